package replay

import (
	"context"
	"fmt"
	"testing"
)

// BenchmarkFold reports records a second of a recording on disk, one task a record.
func BenchmarkFold(b *testing.B) {
	l := newLog(b, 4)
	const n = 50_000
	for i := range n {
		l.report(fmt.Sprintf("b-%d", i%100), "w", uint32(i/100))
	}
	src, _ := l.file()
	b.ResetTimer()
	for b.Loop() {
		if _, err := Fold(context.Background(), FoldConfig{Machine: counter{}, Source: src}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "records/s")
}
