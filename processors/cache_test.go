package processors

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCacheIsBoundedAndKeepsWhatIsDirty(t *testing.T) {
	w := newWorld(1)
	p, err := w.own(w.live(), newMemory(), &tally{}, nil, rules{})
	require.NoError(t, err)
	p.cache.limit = 20 * entryOverhead
	for i := range uint32(200) {
		w.report(fmt.Sprint("k", i), i)
	}
	require.NoError(t, w.feed(p, 100))
	require.Len(t, p.cache.rows, 200, "headers and parts of an open cut stay")
	require.NoError(t, settle(p))
	require.NoError(t, w.feed(p, 100))
	require.Len(t, p.cache.rows, 200, "the clean ones have left")
	require.NoError(t, settle(p))
	require.NoError(t, w.feed(w.ownNow(t, newMemory(), rules{}), 1))
	require.NoError(t, w.verdict())

	size := 0
	for _, e := range p.cache.rows {
		size += e.weigh()
	}
	require.Equal(t, size, p.cache.size)
}
