package dispatcher_test

import (
	"context"
	"testing"
	"time"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/worker"
)

// BenchmarkFanOut: orders -> tasks -> no-op handlers -> reports, over the embedded broker in this process; the test plays
// the controller with one order.
func BenchmarkFanOut(b *testing.B) {
	k := setup(b, 8)
	k.run()
	k.work(func(context.Context, *worker.Task) (worker.Result, error) { return worker.Result{}, nil }, 1024)
	control := k.follow(codecs.TopicControl)
	fan := func(batch string, n int) {
		at := k.manifest(batch, n, 1000)
		k.order(batch, &codecs.Dispatch{Run: "r", Queue: "q", Lo: 0, Hi: uint32(n), Chunks: at})
		for left := n; left > 0; {
			for _, it := range receive(b, control).Data.(*codecs.BatchReport).Items {
				if err := codecs.ForEachRange(it, func(first, last uint32) { left -= int(last-first) + 1 }); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	fan("warm", 1000)
	b.ResetTimer()
	start := time.Now()
	const n = 50_000
	for range b.N {
		fan("b", n)
	}
	b.ReportMetric(float64(b.N)*n/time.Since(start).Seconds(), "tasks/s")
}
