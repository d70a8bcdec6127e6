package processors

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestNudgesComeInBursts: rows that are due at once are nudged some at a time, each once.
func TestNudgesComeInBursts(t *testing.T) {
	const n = 2*nudgeBurst + 1
	var x timers
	now := time.UnixMilli(1_000_000)
	for i := range n {
		x.set(fmt.Sprint(i), now.UnixMilli()-int64(i))
	}
	seen := map[string]bool{}
	for _, want := range []int{nudgeBurst, nudgeBurst, 1, 0} {
		keys := x.due(now)
		require.Len(t, keys, want)
		for _, k := range keys {
			require.False(t, seen[k], k)
			seen[k] = true
		}
		require.Empty(t, x.due(now.Add(time.Millisecond)))
		now = now.Add(nudgePause)
	}
}

// TestCutIsBoundedByItsRows: a cut that many rows are in is closed, so that memory does not depend on their number.
func TestCutIsBoundedByItsRows(t *testing.T) {
	w := newWorld(1)
	p := w.ownNow(t, newMemory(), rules{})
	for i := range 15 {
		p.touch(&entry{key: fmt.Sprint(i), weight: maxCutWeight / 16})
		require.False(t, p.open.full())
	}
	e := &entry{key: "last", weight: maxCutWeight / 16}
	p.touch(e)
	require.True(t, p.open.full())
	require.Same(t, p.open, e.inCut)
}
