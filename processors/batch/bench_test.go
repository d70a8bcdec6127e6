package batch

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
)

// BenchmarkReport is Parts, StepPart and Step of reports of K tasks, the rows decoded, the records too; a cut every
// thousand reports.
func BenchmarkReport(b *testing.B) {
	for _, k := range []uint32{1, 100, 1000} {
		b.Run(fmt.Sprint("K=", k), func(b *testing.B) {
			const total = 8_000_000
			e := newEnv(b, mutants{})
			e.cached = map[string]codecs.Row{}
			e.start(&codecs.BatchStart{})
			e.seal(total)
			h := e.header()
			last := k - 1
			it := &codecs.ReportItem{Last: &last, Outcome: codecs.OK}
			if k == 1 {
				it.Last = nil
			}
			ev := &codecs.Event{Type: codecs.TypeBatchReport, Time: e.now, Data: &codecs.BatchReport{Run: "r", Items: []*codecs.ReportItem{it}}}
			chunks := map[string]*Chunk{}
			parts := make([]codecs.Row, 0, 4)
			out := make([]codecs.Message, 0, 8)
			at, off := uint32(0), e.offset
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if at+k > total-1 { // the last task stays open
					at = 0
				}
				it.First, last = at, at+k-1
				at += k
				off++
				parts, out = parts[:0], out[:0]
				for _, key := range e.m.Parts(h, off, ev) {
					c := chunks[key]
					if c == nil {
						c = e.m.NewPart(key).(*Chunk)
						chunks[key] = c
					}
					e.m.StepPart(c, off, ev)
					parts = append(parts, c)
				}
				out = e.m.Step(h, parts, off, ev, out)
				if n%1000 == 999 {
					out = e.m.Cut(h, out)
				}
			}
			require.Equal(b, codecs.State_sealed, h.run.State)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(k), "ns/task")
		})
	}
}
