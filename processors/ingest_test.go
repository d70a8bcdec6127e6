package processors

import (
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// counter is the cheapest machine: one number per key. What it costs is the runtime.
type counter struct{ tally }

func (*counter) Parts(Row, int64, *codecs.Event) []string          { return nil }
func (*counter) Decode(rec *codecs.Record, ev *codecs.Event) error { return codecs.Decode(rec, ev) }
func (*counter) Deadline(Row) int64                                { return 0 }
func (*counter) Step(row Row, _ []Row, _ int64, _ *codecs.Event, out []codecs.Message) []codecs.Message {
	row.(*tallyRow).Count++
	return out
}

// BenchmarkIngest runs inputs of one completion through the whole runtime, on the embedded broker in this process.
func BenchmarkIngest(b *testing.B) {
	for _, through := range []bool{false, true} {
		b.Run(fmt.Sprintf("goka_loop=%v", through), func(b *testing.B) {
			d := deploy(b)
			recs := make([]*kgo.Record, 0, b.N)
			for i := range b.N {
				r := d.report(fmt.Sprint("b", i%1000), uint32(i))
				k := &kgo.Record{Topic: r.Topic, Partition: -1, Key: r.Key, Value: r.Value}
				for _, h := range r.Headers {
					k.Headers = append(k.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
				}
				recs = append(recs, k)
			}
			require.NoError(b, d.client.ProduceSync(b.Context(), recs...).FirstErr())
			clear(recs)
			runtime.GC()
			cfg := d.config(&counter{})
			cfg.ThroughGoka, cfg.Logger = through, slog.New(slog.DiscardHandler)
			p, stop := d.start(cfg)
			d.ready(p)
			b.ResetTimer()
			start := time.Now()
			require.Eventually(b, func() bool { return counterValue(b, p.m.inputs) >= float64(b.N) }, 10*time.Minute, time.Millisecond)
			b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "inputs/s")
			b.StopTimer()
			stop()
		})
	}
}
