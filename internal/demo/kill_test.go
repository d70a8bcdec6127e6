package demo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/binary"
	"github.com/quiesce/quiesce/internal/broker/apache"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/internal/demo"
)

func TestMain(m *testing.M) { binary.Main(m) }

const (
	shortRuns = 2  // one in each mode
	longRuns  = 20 // QUIESCE_TEST_LONG=1
	kills     = 6  // in each run
)

// However often and whenever a service, the controller or the feeder is killed: one completion event, with the counts
// and failures of a plain loop.
func TestKillsChangeNothing(t *testing.T) {
	binary.Path(t)
	runs, seed := shortRuns, uint64(time.Now().UnixNano())
	if os.Getenv("QUIESCE_TEST_LONG") != "" {
		runs = longRuns
	}
	if s, err := strconv.ParseUint(os.Getenv("QUIESCE_TEST_SEED"), 10, 64); err == nil {
		seed = s
	}
	root, err := demo.GoSource()
	require.NoError(t, err)
	dir := filepath.Join(root, "cmd")
	want, err := demo.Plain(t.Context(), dir)
	require.NoError(t, err)
	for i := range runs {
		mode := []string{"markers", "ledger"}[i%2]
		t.Run(fmt.Sprintf("%s-%d", mode, i), func(t *testing.T) {
			t.Logf("again: QUIESCE_TEST_SEED=%d go test ./internal/demo -run TestKillsChangeNothing", seed)
			killRun(t, dir, mode, rand.New(rand.NewPCG(seed, uint64(i))), want)
		})
	}
}

// system is a deployment whose parts are processes.
type system struct {
	t         *testing.T
	bootstrap string
	args      map[string][]string
	up        map[string]*binary.Process
}

func killRun(t *testing.T, dir, mode string, rng *rand.Rand, want *demo.Index) {
	s := &system{t: t, bootstrap: newBroker(t), args: map[string][]string{}, up: map[string]*binary.Process{}}
	work := t.TempDir()
	file, tasks := filepath.Join(work, "t.yaml"), filepath.Join(work, "tasks.jsonl")
	require.NoError(t, os.WriteFile(file, demo.TopologyFile, 0o600))
	paths, _, err := demo.Files(dir)
	require.NoError(t, err)
	writeTasks(t, tasks, paths)

	s.args["controller"] = []string{"run", "--roles", "controller", "--topology", file, "--partitions", "4",
		"--data-dir", filepath.Join(work, "controller"), "--instance-id", "c"}
	for _, name := range []string{"read", "parse", "digest", "report"} {
		s.args[name] = []string{"demo", "stage", name, "--input", dir, "--instance-id", name}
	}
	s.args["feeder"] = []string{"feed", "--batch", "b", "--topology", file, "--mode", mode, "--key", "path", tasks}
	s.start("controller").WaitFor("running")
	for _, name := range []string{"read", "parse", "digest", "report", "feeder"} {
		s.start(name)
	}
	names := []string{"controller", "read", "parse", "digest", "report", "feeder"}
	for i := range kills {
		name := names[rng.IntN(len(names))]
		if i == 0 {
			name = "feeder" // it is done soon
			pause(t, time.Duration(rng.IntN(60))*time.Millisecond)
		} else {
			pause(t, time.Duration(rng.IntN(300))*time.Millisecond)
		}
		t.Logf("kill %s", name)
		s.up[name].Kill() // a feeder that has ended already is only started again
		s.start(name)
	}
	events := s.events("b")
	require.Len(t, events, 1, "terminal events by id")
	for id, e := range events {
		require.True(t, strings.HasSuffix(id, "/terminal"), id)
		require.Equal(t, codecs.State_completed_with_failures, e.State)
		require.Equal(t, want.Files, int(e.Counts.Total))
		require.Equal(t, len(want.Failures), int(e.Counts.Failed))
	}
	require.Equal(t, want.Failures, s.failures("b", paths))
}

// newBroker is a broker of the run's own: embedded, or Apache Kafka under make test-kafka.
func newBroker(t *testing.T) string {
	if brokertest.Real() != "" {
		return brokertest.Cluster(t, apache.Config{}).Bootstrap()
	}
	return brokertest.Embedded(t).Bootstrap()
}

// writeTasks writes the feeder's input.
func writeTasks(t *testing.T, name string, paths []string) {
	f, err := os.Create(name)
	require.NoError(t, err)
	enc := json.NewEncoder(f)
	for _, p := range paths {
		require.NoError(t, enc.Encode(demo.File{Path: p}))
	}
	require.NoError(t, f.Close())
}

// start starts a part, or starts it again.
func (s *system) start(name string) *binary.Process {
	s.up[name] = binary.Start(s.t, append(s.args[name], "--bootstrap-server", s.bootstrap)...)
	return s.up[name]
}

// pause lets the parts run for a while: kills come at random moments.
func pause(t *testing.T, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

// events waits for the end of the batch, and then for that of an empty batch that is sent last: what would contradict
// the first end has then been sent. It returns the terminal events by id.
func (s *system) events(batch string) map[string]*codecs.BatchEvent {
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	c, err := kgo.NewClient(kgo.SeedBrokers(s.bootstrap), kgo.ConsumeTopics(codecs.Topic(codecs.DefaultPrefix, codecs.TopicEvents)),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(s.t, err)
	defer c.Close()
	found := map[string]*codecs.BatchEvent{}
	fence := fenceFor(batch, 4)
	for sent := false; found[codecs.TerminalID(fence, "r", 1)] == nil; {
		fetches := c.PollFetches(ctx)
		require.NoError(s.t, fetches.Err0(), "the batch has not ended: %v", found)
		fetches.EachRecord(func(k *kgo.Record) {
			if ev := event(s.t, k); strings.HasSuffix(ev.ID, "/terminal") {
				found[ev.ID] = ev.Data.(*codecs.BatchEvent)
			}
		})
		if len(found) > 0 && !sent {
			sent = true
			s.send(ctx, c, fence)
		}
	}
	delete(found, codecs.TerminalID(fence, "r", 1))
	return found
}

// fenceFor is an id on the same partition.
func fenceFor(batch string, partitions int32) string {
	for i := 0; ; i++ {
		if id := fmt.Sprintf("fence-%d", i); codecs.Partition([]byte(id), partitions) == codecs.Partition([]byte(batch), partitions) {
			return id
		}
	}
}

// send starts and seals a batch without tasks.
func (s *system) send(ctx context.Context, c *kgo.Client, id string) {
	for _, ev := range []codecs.Event{{Type: codecs.TypeBatchStart, ID: id + "/start", Data: &codecs.BatchStart{Run: "r"}},
		{Type: codecs.TypeBatchSeal, ID: id + "/seal", Data: &codecs.BatchSeal{Run: "r"}}} {
		rec, err := codecs.Encode(codecs.Topic(codecs.DefaultPrefix, codecs.TopicControl), id, codecs.Source(codecs.DefaultPrefix, "test"), &ev)
		require.NoError(s.t, err)
		k := &kgo.Record{Topic: rec.Topic, Key: rec.Key, Value: rec.Value}
		for _, h := range rec.Headers {
			k.Headers = append(k.Headers, kgo.RecordHeader(h))
		}
		require.NoError(s.t, c.ProduceSync(ctx, k).FirstErr())
	}
}

func event(t *testing.T, k *kgo.Record) *codecs.Event {
	rec := codecs.Record{Key: k.Key, Value: k.Value}
	for _, h := range k.Headers {
		rec.Headers = append(rec.Headers, codecs.Header(h))
	}
	ev := &codecs.Event{}
	require.NoError(t, codecs.Decode(&rec, ev))
	return ev
}

// failures reads the reasons of failed tasks; paths are the tasks by index.
func (s *system) failures(batch string, paths []string) []demo.Failure {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	topic := codecs.Topic(codecs.DefaultPrefix, codecs.TopicOutcomes)
	c, err := kgo.NewClient(kgo.SeedBrokers(s.bootstrap), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(s.t, err)
	defer c.Close()
	ends, err := kadm.NewClient(c).ListEndOffsets(ctx, topic)
	require.NoError(s.t, err)
	left := int64(0)
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	byPath := map[string]demo.Failure{}
	for left > 0 {
		fetches := c.PollFetches(ctx)
		require.NoError(s.t, fetches.Err0())
		fetches.EachRecord(func(k *kgo.Record) {
			left--
			o, ok := event(s.t, k).Data.(*codecs.TaskOutcome)
			if !ok || string(codecs.BatchOf(k.Key)) != batch {
				return
			}
			path := paths[o.Index]
			stage, _, _ := strings.Cut(o.Reporter, "@")
			byPath[path] = demo.Failure{Path: path, Stage: stage, Reason: o.Reason}
		})
	}
	var out []demo.Failure
	for _, f := range byPath {
		out = append(out, f)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out
}
