package processors

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
)

// deployment is a set of topics on a broker.
type deployment struct {
	t         *testing.T
	bootstrap string
	prefix    string
	client    *kgo.Client
}

const testPartitions = 4

func deploy(t *testing.T) *deployment {
	t.Helper()
	d := &deployment{t: t, bootstrap: brokertest.Bootstrap(t), prefix: fmt.Sprintf("t%d", time.Now().UnixNano())}
	d.client = brokertest.Client(t, d.bootstrap, kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(func(string) func(*kgo.Record, int) int {
		return func(r *kgo.Record, n int) int {
			if r.Partition >= 0 {
				return int(r.Partition)
			}
			return int(codecs.Partition(r.Key, int32(n)))
		}
	})), kgo.ProducerLinger(0))
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
		require.NoError(t, err)
	}
	return d
}

func (d *deployment) topic(name string) string { return codecs.Topic(d.prefix, name) }

func (d *deployment) config(m Machine) Config {
	return Config{Bootstrap: []string{d.bootstrap}, Prefix: d.prefix, Machine: m, DataDir: d.t.TempDir(), Logger: slog.New(slog.NewTextHandler(testWriter{d.t}, &slog.HandlerOptions{Level: slog.LevelInfo}))}
}

type testWriter struct{ t *testing.T }

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
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
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

func TestProcessorCompletesBatches(t *testing.T) {
	for _, through := range []bool{false, true} {
		t.Run(fmt.Sprintf("through goka %v", through), func(t *testing.T) {
			d := deploy(t)
			cfg := d.config(&tally{})
			cfg.ThroughGoka = through
			_, stop := d.start(cfg)
			for i := range 20 {
				d.send(d.report(fmt.Sprint("b", i), 1, 2, 3), d.event(fmt.Sprint("b", i), codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "r", Total: 4}))
			}
			for i := range 20 {
				d.send(d.report(fmt.Sprint("b", i), 3, 100))
			}
			seen := map[string]bool{}
			d.read(codecs.TopicEvents, func(r *kgo.Record) bool {
				for _, h := range r.Headers {
					if h.Key == codecs.HeaderType && string(h.Value) == "quiesce.batch.completed.v1" {
						seen[string(r.Key)] = true
					}
				}
				return len(seen) == 20
			})
			stop()
		})
	}
}
