package invoices_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/binary"
	"github.com/quiesce/quiesce/internal/broker/apache"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/internal/invoices"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/client"
	"github.com/quiesce/quiesce/internal/tail"
	"github.com/quiesce/quiesce/processors/queue"
	"github.com/quiesce/quiesce/processors/worker"
)

// patience is how long anything may take.
const patience = 2 * time.Minute

// system is a deployment whose parts are processes; broker, mail sink and receiver of webhooks live in the test.
type system struct {
	t      *testing.T
	log    tail.Config
	client *kgo.Client
	http   *client.Client
	sink   *invoices.Sink
	hook   *invoices.Hook
	job    string
	orders string
	out    string
	config string
	args   map[string][]string
	mu     sync.Mutex
	up     map[string]*binary.Process
	fences map[string]string

	evidence *invoices.Evidence
}

func newSystem(t *testing.T, seed invoices.Seed) *system {
	binary.Path(t)
	bootstrap, dir := newBroker(t), t.TempDir()
	s := &system{t: t, log: tail.Config{Bootstrap: strings.Split(bootstrap, ",")}, job: "j", orders: filepath.Join(dir, "orders.csv"),
		out: filepath.Join(dir, "out"), config: filepath.Join(dir, "quiesce.yaml"), args: map[string][]string{}, up: map[string]*binary.Process{},
		fences: map[string]string{}}
	s.client = brokertest.Client(t, bootstrap, kgo.RecordPartitioner(worker.Partitioner(codecs.DefaultPrefix)))
	var b bytes.Buffer
	require.NoError(t, invoices.WriteOrders(&b, seed))
	require.NoError(t, os.WriteFile(s.orders, b.Bytes(), 0o600))
	require.NoError(t, os.WriteFile(s.config, []byte("delivery: {allow_private: true}\n"), 0o600))
	types := filepath.Join(dir, "invoices.yaml")
	require.NoError(t, os.WriteFile(types, invoices.JobTypeFile, 0o600))

	var err error
	s.sink, err = invoices.StartSink("127.0.0.1:0", 50)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.sink.Close()) })
	s.hook, err = invoices.StartHook("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.hook.Close()) })

	listen := free(t)
	s.http, err = client.New(client.Config{Address: listen})
	require.NoError(t, err)
	for name, roles := range map[string]string{"workflow": "workflow", "others": "controller,dispatcher,stats,notifier,sidecar"} {
		s.args[name] = []string{"run", "--config", s.config, "--roles", roles, "--jobs", types, "--partitions", "2", "--queue-partitions", "4",
			"--data-dir", filepath.Join(dir, name), "--listen", listen}
	}
	for _, name := range invoices.Services() {
		s.args[name] = s.plain(name)
	}
	return s
}

// plain are the arguments of a worker without faults.
func (s *system) plain(name string) []string {
	return []string{"demo", "invoices", "work", name, "--out", s.out, "--smtp", s.sink.Address(), "--smtp-plain"}
}

// newBroker is a broker of the test's own: embedded, or Apache Kafka under make test-kafka.
func newBroker(t *testing.T) string {
	if brokertest.Real() != "" {
		return brokertest.Cluster(t, apache.Config{}).Bootstrap()
	}
	return brokertest.Embedded(t).Bootstrap()
}

// free is an address on which nothing listens.
func free(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

func keys(m map[string][]string) iter.Seq[string] { return maps.Keys(m) }

// start starts a process, or starts it again, under the same name for its groups.
func (s *system) start(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up[name] = binary.Start(s.t, append(slices.Clone(s.args[name]), "--bootstrap-server", strings.Join(s.log.Bootstrap, ","), "--instance-id", name)...)
}

// process is the one that was started last under a name.
func (s *system) process(name string) *binary.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.up[name]
}

// revive starts a process that ends by itself again, once. The caller waits.
func (s *system) revive(name string) (wait func()) {
	s.args[name] = s.plain(name)
	p, done := s.process(name), make(chan struct{})
	go func() {
		defer close(done)
		if code := p.Wait(); code >= 0 {
			s.t.Errorf("%s ended with %d, it should have been killed", name, code)
		}
		s.start(name)
	}()
	return func() { <-done }
}

// startAll starts everything; the topics are made by the first one.
func (s *system) startAll() {
	s.start("others")
	s.process("others").WaitFor("running")
	for name := range s.args {
		if name != "others" {
			s.start(name)
		}
	}
	s.eventually("the sidecar is ready", func(ctx context.Context) bool { return s.http.Ready(ctx) == nil })
}

// request requests the job, and has completions come twice from now on.
func (s *system) request() {
	s.t.Helper()
	req := invoices.Request(s.orders, &codecs.Subscription{Event: "job.*", Url: s.hook.URL()}, &codecs.Subscription{Event: "step.*", Url: s.hook.URL()})
	_, err := s.http.RequestJob(s.t.Context(), client.JobID{Job: s.job}, req, client.WriteOptions{})
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(s.t.Context())
	var twice sync.WaitGroup
	twice.Go(func() { s.twice(ctx, codecs.TopicControl) })
	twice.Go(func() { s.twice(ctx, codecs.TopicJobs) })
	s.t.Cleanup(func() { cancel(); twice.Wait() })
}

// twice sends every 7th completion of a sub-job again, alone, and each of a step's task.
func (s *system) twice(ctx context.Context, topic string) {
	n := 0
	_ = tail.Follow(ctx, s.log, topic, func(ev *codecs.Event) (bool, error) { // ends with ctx
		if strings.HasPrefix(ev.ID, "again/") {
			return false, nil
		}
		switch d := ev.Data.(type) {
		case *codecs.TaskCompleted:
			s.send(ctx, topic, &codecs.Event{Type: ev.Type, ID: "again/" + ev.ID, Key: ev.Key, Data: d})
		case *codecs.BatchReport:
			for _, it := range d.Items {
				_ = codecs.ForEachRange(it, func(first, last uint32) {
					for i := first; i <= last; i++ {
						if n++; n%7 == 0 {
							one := &codecs.ReportItem{First: i, Leg: it.Leg, Outcome: it.Outcome, Reason: it.Reason, Attempt: it.Attempt}
							s.send(ctx, topic, &codecs.Event{Type: ev.Type, ID: fmt.Sprintf("again/%s/%d", ev.ID, i), Key: ev.Key,
								Data: &codecs.BatchReport{Run: d.Run, Round: d.Round, Reporter: d.Reporter, Items: []*codecs.ReportItem{one}, Timing: d.Timing}})
						}
					}
				})
			}
		}
		return false, nil
	})
}

// send writes an event to a topic of the deployment.
func (s *system) send(ctx context.Context, topic string, ev *codecs.Event) {
	rec, err := codecs.Encode(codecs.Topic(codecs.DefaultPrefix, topic), ev.Key, codecs.Source(codecs.DefaultPrefix, "test"), ev)
	if err != nil {
		s.t.Errorf("encode %s: %v", ev, err)
		return
	}
	k := &kgo.Record{Topic: rec.Topic, Key: rec.Key, Value: rec.Value}
	for _, h := range rec.Headers {
		k.Headers = append(k.Headers, kgo.RecordHeader(h))
	}
	if err := s.client.ProduceSync(ctx, k).FirstErr(); err != nil && ctx.Err() == nil {
		s.t.Errorf("send %s: %v", ev, err)
	}
}

// await reads a topic from its start until fn has seen what it waits for.
func (s *system) await(topic, what string, fn func(*codecs.Event) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	require.NoError(s.t, tail.Follow(ctx, s.log, topic, func(ev *codecs.Event) (bool, error) { return fn(ev), nil }), what)
}

// again puts the last task of a queue into it once more.
func (s *system) again(what, topic string) {
	s.t.Helper()
	var last *codecs.Task
	require.NoError(s.t, tail.Read(s.t.Context(), s.log, topic, func(k *kgo.Record) error {
		ev, err := tail.Decode(k)
		if t, ok := ev.Data.(*codecs.Task); ok {
			last = proto.Clone(t).(*codecs.Task)
		}
		return err
	}))
	require.NotNil(s.t, last, what)
	p := queue.NewProducer(s.client, codecs.DefaultPrefix, codecs.Source(codecs.DefaultPrefix, "test"), nil)
	require.NoError(s.t, p.Enqueue(s.t.Context(), strings.TrimPrefix(topic, codecs.WorkTopic("")), 0, last))
}

// fence is the id of a record at the end of a topic's partition, for reading up to there.
func (s *system) fence(topic string) string {
	if s.fences[topic] == "" {
		s.fences[topic] = "again/fence-" + topic
		key := s.job
		var data proto.Message = &codecs.JobNudge{}
		kind := codecs.TypeJobNudge
		if topic == codecs.TopicControl {
			key, data, kind = s.job+"."+invoices.StepRender, &codecs.BatchNudge{}, codecs.TypeBatchNudge
		}
		s.send(s.t.Context(), topic, &codecs.Event{Type: kind, ID: s.fences[topic], Key: key, Data: data})
	}
	return s.fences[topic]
}

func (s *system) eventually(what string, is func(ctx context.Context) bool) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return is(s.t.Context()) }, patience, 50*time.Millisecond, what)
}

// finish waits for the end of the job and of what follows it, and compares with the plain loop.
func (s *system) finish() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	var j *api.Job
	s.eventually("the job has ended", func(ctx context.Context) bool {
		got, err := s.http.Job(ctx, client.JobID{Job: s.job})
		if err == nil {
			j = got
		}
		return err == nil && got.Terminal
	})
	require.Equal(s.t, "completed_with_failures", j.State, j.Reason)
	events, err := invoices.JobEvents(ctx, s.log, s.job)
	require.NoError(s.t, err)
	require.Len(s.t, events, 9, "%v", events)
	e := &invoices.Evidence{Job: j, Folder: invoices.JobFolder(s.out, s.job), Events: events}
	s.evidence = e
	want, err := invoices.Plain(s.orders)
	require.NoError(s.t, err)
	s.eventually("statistics and notifications have followed", func(ctx context.Context) bool {
		for row, err := range s.http.Stats(ctx, client.StatsFilter{Type: j.Type, Step: invoices.StepRender, Total: true}) {
			if err == nil {
				e.Stats = row
			}
		}
		return e.Stats != nil && e.Stats.Tasks.Ended >= uint64(want.Customers) && len(s.hook.Notes()) >= len(events)
	})
	e.Mails, e.Notes = s.sink.Mails(), s.hook.Notes()
	differences, err := e.Differences(want)
	require.NoError(s.t, err)
	require.Empty(s.t, differences)
	mails, notes := e.Repeats()
	s.t.Logf("%d invoices; %d mails and %d notifications came twice", want.Invoices, mails, notes)
}

func isBatch(kind string) bool {
	return strings.HasPrefix(kind, "batch.") || strings.HasPrefix(kind, "subjobs.")
}

func terminal(ev *codecs.Event) bool { return strings.HasSuffix(ev.ID, "/terminal") }
