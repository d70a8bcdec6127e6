package batch

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
)

// TestWeightIsAboutTheMemory compares what rows say of their weight with what the heap says.
func TestWeightIsAboutTheMemory(t *testing.T) {
	rows := func(fill func(e *env)) map[string]codecs.Row {
		e := newEnv(t, mutants{})
		e.cached = map[string]codecs.Row{}
		e.start(&codecs.BatchStart{MaxTotal: 1 << 20})
		fill(e)
		return e.cached
	}
	for name, fill := range map[string]func(e *env){
		"small": func(e *env) {
			e.seal(10)
			e.round(1, 0, 4, codecs.OK)
		},
		"large": func(e *env) {
			e.seal(1 << 20)
			for c := range uint32(16) {
				e.round(1, c<<16, c<<16|0xfffe, codecs.OK)
			}
		},
		"scattered": func(e *env) {
			e.seal(1 << 16)
			var items []*codecs.ReportItem
			for i := uint32(0); i < 2000; i += 2 {
				items = append(items, codecs.NewItem(i, i, codecs.Failed))
			}
			e.report(items...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			const n = 50
			stored := map[string][]byte{}
			for key, r := range rows(fill) {
				b, err := r.AppendBinary(nil)
				require.NoError(t, err)
				stored[key] = b
			}
			before := heap()
			var live []codecs.Row
			weight := 0
			for range n {
				for key, r := range rows(fill) {
					live = append(live, r)
					weight += r.(interface{ Weight() int }).Weight() + len(stored[key])
				}
			}
			took := int(heap() - before)
			t.Logf("%d rows weigh %d, take %d", len(live), weight, took)
			require.InEpsilon(t, took, weight, 0.6)
			runtime.KeepAlive(live)
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
