package dispatcher_test

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
	"github.com/quiesce/quiesce/processors/dispatcher"
	"github.com/quiesce/quiesce/processors/worker"
	"github.com/quiesce/quiesce/topology"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

const patience = 60 * time.Second

var (
	kitNumber atomic.Int64
	quiet     = slog.New(slog.NewTextHandler(io.Discard, nil))
	fast      = []kgo.Opt{kgo.MetadataMinAge(50 * time.Millisecond), kgo.HeartbeatInterval(100 * time.Millisecond)}
)

// kit is a deployment of its own with a queue "q"; the test plays the controller.
type kit struct {
	t         testing.TB
	bootstrap string
	prefix    string
	client    *kgo.Client
	reporter  *worker.LogReporter
	number    int
}

func setup(t testing.TB, partitions int32) *kit {
	t.Helper()
	k := &kit{t: t, bootstrap: brokertest.Bootstrap(t), prefix: fmt.Sprintf("d%d-%d", os.Getpid(), time.Now().UnixNano()+kitNumber.Add(1))}
	k.client = brokertest.Client(t, k.bootstrap, kgo.RecordPartitioner(worker.Partitioner(k.prefix)), kgo.ProducerLinger(0),
		kgo.ProducerBatchMaxBytes(4<<20))
	m, err := topics.New(topics.Config{Client: k.client})
	require.NoError(t, err)
	var specs []topology.Spec
	q := topology.Queue{Name: "q", Partitions: partitions, Retries: []time.Duration{50 * time.Millisecond}}
	for _, s := range (topology.Settings{Prefix: k.prefix, Partitions: 2, Queues: []topology.Queue{q}}).System() {
		if !strings.Contains(s.Name, "-table") && !strings.Contains(s.Name, "work.notify") {
			specs = append(specs, s)
		}
	}
	_, err = m.Apply(context.Background(), specs)
	require.NoError(t, err)
	k.reporter = worker.NewReporter(k.client, worker.Config{Prefix: k.prefix, Queue: "q", ClientID: "test"})
	return k
}

// run starts a dispatcher; stop ends it. The test's end stops it too.
func (k *kit) run(change ...func(*dispatcher.Config)) (stop func()) {
	cfg := dispatcher.Config{Bootstrap: k.bootstrap, Prefix: k.prefix, Log: quiet, Options: fast}
	for _, c := range change {
		c(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- dispatcher.Run(ctx, cfg) }()
	return k.stopper(cancel, done)
}

// work starts a worker of the queue.
func (k *kit) work(h worker.Handler, concurrency int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- worker.Run(ctx, worker.Config{Bootstrap: k.bootstrap, Prefix: k.prefix, Queue: "q", Handler: h, Log: quiet, Options: fast,
			Concurrency: concurrency, Retries: []time.Duration{50 * time.Millisecond}})
	}()
	return k.stopper(cancel, done)
}

func (k *kit) stopper(cancel func(), done <-chan error) func() {
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(k.t, <-done)
		}
	}
	k.t.Cleanup(stop)
	return stop
}

// manifest writes n tasks in chunks of size.
func (k *kit) manifest(batch string, n, size int) (at []*codecs.ChunkPosition) {
	k.t.Helper()
	k.number++
	for first := 0; first < n; first += size {
		c := &codecs.ManifestChunk{First: uint32(first)}
		for i := first; i < min(first+size, n); i++ {
			c.Tasks = append(c.Tasks, &codecs.ManifestTask{Id: fmt.Sprint("t", i), Payload: &codecs.Payload{Data: fmt.Append(nil, i)}})
		}
		p, err := k.reporter.Chunk(context.Background(), codecs.ChunkKey(batch, fmt.Sprint("p", k.number), uint32(len(at))), c)
		require.NoError(k.t, err)
		at = append(at, p)
	}
	return at
}

// order writes an order.
func (k *kit) order(batch string, o *codecs.Dispatch) {
	k.t.Helper()
	k.send(codecs.TopicDispatch, batch, codecs.TypeDispatch, o)
}

func (k *kit) send(topic, key, kind string, o *codecs.Dispatch) {
	k.t.Helper()
	rec, err := codecs.Encode(codecs.Topic(k.prefix, topic), key, "test", &codecs.Event{Type: kind, ID: "1", Data: o})
	require.NoError(k.t, err)
	out := &kgo.Record{Topic: rec.Topic, Key: rec.Key, Value: rec.Value}
	for _, h := range rec.Headers {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	require.NoError(k.t, k.client.ProduceSync(context.Background(), out).FirstErr())
}

// follow decodes a topic from its start, until the test ends.
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
				ev := &codecs.Event{Partition: r.Partition}
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
