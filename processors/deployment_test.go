package processors

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
)

// deployment is a set of topics on a broker.
type deployment struct {
	t         testing.TB
	broker    *broker.Broker // nil: a real one
	bootstrap string
	prefix    string
	client    *kgo.Client
}

const testPartitions = 4

func deploy(t testing.TB) *deployment {
	t.Helper()
	d := &deployment{t: t, bootstrap: brokertest.Real(), prefix: fmt.Sprintf("t%d", time.Now().UnixNano())}
	if d.bootstrap == "" {
		d.broker = brokertest.Embedded(t)
		d.bootstrap = d.broker.Bootstrap()
	}
	d.client = brokertest.Client(t, d.bootstrap, kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(func(string) func(*kgo.Record, int) int {
		return func(r *kgo.Record, n int) int {
			if r.Partition >= 0 {
				return int(r.Partition)
			}
			return int(codecs.Partition(r.Key, int32(n)))
		}
	})), kgo.ProducerLinger(0))
	d.create()
	return d
}

// create makes the topics.
func (d *deployment) create() {
	d.t.Helper()
	admin := kadm.NewClient(d.client)
	compact, appended := "compact", "LogAppendTime"
	for name, c := range map[string]map[string]*string{
		d.topic(codecs.TopicControl):                   {"message.timestamp.type": &appended},
		d.topic(codecs.TopicEvents):                    {},
		d.topic(codecs.TopicDeadLetter):                {},
		d.topic(codecs.TopicStatus):                    {"cleanup.policy": &compact},
		codecs.Table(d.prefix, codecs.GroupController): {"cleanup.policy": &compact},
	} {
		_, err := admin.CreateTopic(context.Background(), testPartitions, -1, c, name)
		require.NoError(d.t, err)
	}
}

func (d *deployment) topic(name string) string { return codecs.Topic(d.prefix, name) }

func (d *deployment) config(m Machine) Config {
	return Config{Bootstrap: []string{d.bootstrap}, Prefix: d.prefix, Machine: m, DataDir: d.t.TempDir(), Logger: slog.New(slog.NewTextHandler(testWriter{d.t}, &slog.HandlerOptions{Level: slog.LevelInfo}))}
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) { w.t.Log(string(b)); return len(b), nil }

// start runs a processor until the test's end or until stop.
func (d *deployment) start(cfg Config) (p *Processor, stop func()) {
	d.t.Helper()
	p, err := New(cfg)
	require.NoError(d.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	stopped := false
	stop = func() {
		cancel()
		if !stopped {
			stopped = true
			require.NoError(d.t, <-done)
		}
	}
	d.t.Cleanup(stop)
	return p, stop
}

func (d *deployment) send(recs ...codecs.Record) {
	d.t.Helper()
	var ks []*kgo.Record
	for _, r := range recs {
		k := &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			k.Headers = append(k.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		ks = append(ks, k)
	}
	require.NoError(d.t, d.client.ProduceSync(context.Background(), ks...).FirstErr())
}

// read returns n records of a topic, or fails.
func (d *deployment) read(name string, until func(r *kgo.Record) bool) (all []*kgo.Record) {
	d.t.Helper()
	c := brokertest.Client(d.t, d.bootstrap, kgo.ConsumeTopics(d.topic(name)), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		f := c.PollFetches(ctx)
		require.NoError(d.t, ctx.Err(), "%s: %d records, the last one awaited is missing", name, len(all))
		for it := f.RecordIter(); !it.Done(); {
			r := it.Next()
			all = append(all, r)
			if until(r) {
				return all
			}
		}
	}
}

func (d *deployment) report(key string, indexes ...uint32) codecs.Record {
	rep := &codecs.BatchReport{Run: "r"}
	for _, i := range indexes {
		rep.Items = append(rep.Items, &codecs.ReportItem{First: i, Outcome: codecs.OK})
	}
	return d.event(key, codecs.TypeBatchReport, rep)
}

func (d *deployment) event(key, typ string, data proto.Message) codecs.Record {
	rec, err := codecs.Encode(d.topic(codecs.TopicControl), key, "/test", &codecs.Event{Type: typ, ID: fmt.Sprint(key, typ, time.Now().UnixNano()), Data: data})
	require.NoError(d.t, err)
	return rec
}

// settled waits until everything that is in the input is durable, and the positions are written.
func (d *deployment) settled(ps ...*Processor) {
	d.t.Helper()
	admin := kadm.NewClient(d.client)
	require.Eventually(d.t, func() bool {
		ends, err := admin.ListEndOffsets(context.Background(), d.topic(codecs.TopicControl))
		if err != nil {
			return false
		}
		done := 0
		for _, p := range ps {
			for _, st := range p.Status() {
				o, _ := ends.Lookup(d.topic(codecs.TopicControl), st.Partition)
				if st.Err == nil && st.Written == o.Offset {
					done++
				}
			}
		}
		return done == testPartitions
	}, time.Minute, 20*time.Millisecond, "not settled: %v", statusOf(ps))
}

func statusOf(ps []*Processor) (all []string) {
	for _, p := range ps {
		all = append(all, fmt.Sprint(p.Ready(), p.Status()))
	}
	return all
}

// ready waits until the processors run, with all partitions between them.
func (d *deployment) ready(ps ...*Processor) {
	d.t.Helper()
	require.Eventually(d.t, func() bool {
		n := 0
		for _, p := range ps {
			if p.Ready() != nil {
				return false
			}
			n += len(p.Status())
		}
		return n == testPartitions
	}, time.Minute, 10*time.Millisecond, "not ready: %v", statusOf(ps))
}

// verdict compares each partition with the oracle.
func (d *deployment) verdict() {
	d.t.Helper()
	for id := range int32(testPartitions) {
		w := newWorld(1)
		for topic, name := range map[string]string{wInput: d.topic(codecs.TopicControl), wTable: codecs.Table(d.prefix, codecs.GroupController),
			wStatus: d.topic(codecs.TopicStatus), wEvents: d.topic(codecs.TopicEvents), wDead: d.topic(codecs.TopicDeadLetter)} {
			w.topics[topic] = &logFile{recs: d.partition(name, id)}
		}
		require.NoError(d.t, w.verdict(), "partition %d", id)
	}
}

// partition returns what is in a partition; of the dead letter what came from it.
func (d *deployment) partition(topic string, id int32) (recs []*codecs.Record) {
	d.t.Helper()
	c := &client{Config{Bootstrap: []string{d.bootstrap}}, d.client}
	ids := []int32{id}
	dead := topic == d.topic(codecs.TopicDeadLetter)
	if dead {
		ids = []int32{0, 1, 2, 3}
	}
	for _, p := range ids {
		end, err := c.End(context.Background(), topic, p)
		require.NoError(d.t, err)
		require.NoError(d.t, c.Read(context.Background(), topic, p, 0, end, func(r *codecs.Record) error {
			if from, _ := r.Header(codecs.HeaderDeadPartition); dead && string(from) != fmt.Sprint(id) {
				return nil
			}
			cp := *r
			cp.Headers = append([]codecs.Header(nil), r.Headers...)
			recs = append(recs, &cp)
			return nil
		}))
	}
	return recs
}

// traffic sends a random mixture of inputs; some break the machine.
func (d *deployment) traffic(rnd *rand.Rand, n int) { d.mixture(rnd, n, 20) }

// calm sends a random mixture of inputs that do not break the machine.
func (d *deployment) calm(rnd *rand.Rand, n int) { d.mixture(rnd, n, 18) }

func (d *deployment) mixture(rnd *rand.Rand, n, kinds int) {
	d.t.Helper()
	var recs []codecs.Record
	for range n {
		key := fmt.Sprint("k", rnd.IntN(12))
		switch m := rnd.IntN(kinds); {
		case m < 14:
			recs = append(recs, d.report(key, rnd.Uint32N(300), rnd.Uint32N(300)))
		case m < 17:
			recs = append(recs, d.event(key, codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "r", Total: 1 + rnd.Uint32N(20)}))
		case m < 18:
			recs = append(recs, codecs.Record{Topic: d.topic(codecs.TopicControl), Partition: -1, Key: []byte(key), Value: []byte("junk")})
		case m < 19:
			recs = append(recs, d.event(key, codecs.TypeBatchCommand, &codecs.BatchCommand{Id: "c", Verb: "panic"}))
		default:
			recs = append(recs, d.event(key, codecs.TypeBatchCommand, &codecs.BatchCommand{Id: "c", Verb: "repair"}))
		}
	}
	d.send(recs...)
}
