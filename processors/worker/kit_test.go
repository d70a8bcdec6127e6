package worker_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/internal/topics"
	"github.com/quiesce/quiesce/processors/queue"
	"github.com/quiesce/quiesce/processors/worker"
	"github.com/quiesce/quiesce/topology"
)

const patience = 60 * time.Second

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func subjobs(n int, retry *codecs.Retry) []*codecs.Task {
	out := make([]*codecs.Task, n)
	for i := range out {
		out[i] = &codecs.Task{Kind: "sub-job", Batch: "b", Run: "r", Index: uint32(i), Attempt: 1, Retry: retry, EnqueuedAt: time.Now().UnixMilli()}
	}
	return out
}

// memory runs a worker over an in-memory queue until n tasks ended, and returns their ends by index.
func memory(t *testing.T, cfg worker.Config, n int, tasks ...*codecs.Task) (map[uint32]*worker.End, *worker.Recorder) {
	t.Helper()
	cfg.Queue, cfg.Log = "q", quiet
	m := queue.NewMemory()
	require.NoError(t, m.Enqueue(t.Context(), "q", 0, tasks...))
	ended := make(chan *worker.End, n)
	rec := &worker.Recorder{OnEnd: func(e *worker.End) { ended <- e }}
	ctx, cancel := context.WithCancel(t.Context())
	c := m.Consumer("q")
	done := make(chan error, 1)
	go func() { done <- worker.Work(ctx, cfg, c, m, rec) }()
	ends := map[uint32]*worker.End{}
	for range n {
		select {
		case e := <-ended:
			require.Nil(t, ends[e.Task.Index], "task %d ended twice", e.Task.Index)
			ends[e.Task.Index] = e
		case <-time.After(5 * patience): // the clock may be virtual
			t.Fatalf("%d of %d tasks ended", len(ends), n)
		}
	}
	cancel()
	require.NoError(t, <-done)
	require.NoError(t, c.Close())
	require.Zero(t, m.Len("q"))
	return ends, rec
}

var kitNumber atomic.Int64

// kit is a deployment of its own with a queue "q".
type kit struct {
	t         testing.TB
	bootstrap string
	prefix    string
	client    *kgo.Client
	retries   []time.Duration
}

func setup(t testing.TB, partitions int32, retries ...time.Duration) *kit {
	t.Helper()
	return setupOn(t, brokertest.Bootstrap(t), partitions, retries...)
}

func setupOn(t testing.TB, addr string, partitions int32, retries ...time.Duration) *kit {
	t.Helper()
	k := &kit{t: t, bootstrap: addr, prefix: fmt.Sprintf("w%d-%d", os.Getpid(), time.Now().UnixNano()+kitNumber.Add(1))}
	q := topology.Queue{Name: "q", Partitions: partitions, Retries: retries}.WithDefaults()
	k.retries = q.Retries
	k.client = brokertest.Client(t, k.bootstrap, kgo.RecordPartitioner(worker.Partitioner(k.prefix)), kgo.ProducerLinger(0))
	m, err := topics.New(topics.Config{Client: k.client})
	require.NoError(t, err)
	var specs []topology.Spec
	for _, s := range (topology.Settings{Prefix: k.prefix, Partitions: 2, Queues: []topology.Queue{q}}).System() {
		if !strings.Contains(s.Name, "-table") && !strings.Contains(s.Name, "work.notify") {
			specs = append(specs, s)
		}
	}
	_, err = m.Apply(context.Background(), specs)
	require.NoError(t, err)
	return k
}

func (k *kit) config() worker.Config {
	return worker.Config{Bootstrap: k.bootstrap, Prefix: k.prefix, Queue: "q", Retries: k.retries, Log: quiet, ClientID: "worker@test",
		Options: []kgo.Opt{kgo.MetadataMinAge(50 * time.Millisecond), kgo.HeartbeatInterval(100 * time.Millisecond)}}
}

// run starts a worker; stop drains it. The test's end stops it too.
func (k *kit) run(cfg worker.Config) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx, cfg) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(k.t, <-done)
		}
	}
	k.t.Cleanup(stop)
	return stop
}

func (k *kit) enqueue(tasks ...*codecs.Task) {
	k.t.Helper()
	p := queue.NewProducer(k.client, k.prefix, codecs.Source(k.prefix, "test"), func(string) []time.Duration { return k.retries })
	require.NoError(k.t, p.Enqueue(context.Background(), "q", 0, tasks...))
}

// follow decodes a topic of the deployment from its start, until the test ends.
func (k *kit) follow(topic string) <-chan *codecs.Event {
	cl := brokertest.Client(k.t, k.bootstrap, kgo.ConsumeTopics(codecs.Topic(k.prefix, topic)), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	out := make(chan *codecs.Event, 100_000)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
				rec := codecs.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value}
				for _, h := range r.Headers {
					rec.Headers = append(rec.Headers, codecs.Header{Key: h.Key, Value: h.Value})
				}
				ev := &codecs.Event{}
				if err := codecs.Decode(&rec, ev); err != nil {
					k.t.Errorf("record of %s: %v", topic, err)
					return
				}
				out <- ev
			})
		}
	}()
	k.t.Cleanup(func() { cancel(); <-done })
	return out
}

func receive(t testing.TB, ch <-chan *codecs.Event) *codecs.Event {
	t.Helper()
	select {
	case ev := <-ch:
		return ev
	case <-time.After(patience):
		t.Fatal("no event came")
		return nil
	}
}

// outcomes reads reports until n tasks have one, and returns the first of each.
func outcomes(t testing.TB, control <-chan *codecs.Event, n int) map[uint32]*codecs.ReportItem {
	t.Helper()
	got := map[uint32]*codecs.ReportItem{}
	for len(got) < n {
		ev := receive(t, control)
		for _, it := range ev.Data.(*codecs.BatchReport).Items {
			require.NoError(t, codecs.ForEachRange(it, func(first, last uint32) {
				for i := first; i <= last; i++ {
					if got[i] == nil {
						got[i] = it
					}
				}
			}))
		}
	}
	return got
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
