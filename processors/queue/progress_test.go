package queue

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestProgressAgainstSet compares with the obvious twin: a set of done offsets and a map of counts.
func TestProgressAgainstSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Int64Range(0, 5).Draw(t, "base")
		p := newProgress(base)
		done, counts := map[int64]bool{}, map[int64]int{}
		id := [16]byte{1, 2}
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			o := base + rapid.Int64Range(0, 60).Draw(t, "offset")
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				p.finish(o)
				done[o] = true
				delete(counts, o)
			case 1:
				if !done[o] {
					p.counts[o]++
					counts[o]++
				}
			case 2:
				hi := o + rapid.Int64Range(0, 4).Draw(t, "n")
				p.skip(o, hi)
				for ; o < hi; o++ {
					done[o] = true
					delete(counts, o)
				}
			case 3: // another owner reads what this one committed
				var err error
				p, err = decodeProgress(p.base, id, p.encode(id))
				require.NoError(t, err)
			}
			for o := base; o < base+70; o++ {
				require.Equal(t, done[o], p.isDone(o), "offset %d", o)
				require.Equal(t, counts[o], p.counts[o], "offset %d", o)
			}
			require.False(t, done[p.base])
		}
	})
}

func TestProgressOfAnotherTopicIsIgnored(t *testing.T) {
	p := newProgress(3)
	p.finish(5)
	got, err := decodeProgress(3, [16]byte{9}, p.encode([16]byte{8}))
	require.NoError(t, err)
	require.Equal(t, &progress{counts: map[int64]int{}, stale: true}, got)
	got, err = decodeProgress(7, [16]byte{9}, newProgress(7).encode([16]byte{8}))
	require.NoError(t, err)
	require.True(t, got.stale, "an offset says whose it is even when nothing is open")
}

func TestProgressMetadataIsBounded(t *testing.T) {
	p := newProgress(0)
	starting := 1
	for o := int64(1); !p.full(starting); o += 1000 {
		p.counts[o] = 1
	}
	require.LessOrEqual(t, len(p.encode([16]byte{})), maxMetadata)
	require.Len(t, p.counts, maxSegments)
	for o := int64(0); o < 1e6; o += 2 {
		p.done = append(p.done, span{1e6 + o, 1e6 + o + 1})
	}
	require.LessOrEqual(t, len(p.encode([16]byte{})), maxMetadata, "what does not fit is left out")
}

func FuzzDecodeProgress(f *testing.F) {
	p := newProgress(10)
	p.finish(12)
	p.counts[14] = 3
	f.Add(int64(10), p.encode([16]byte{1}))
	f.Add(int64(0), "")
	f.Add(int64(0), strings.Repeat("A", 40))
	f.Fuzz(func(t *testing.T, base int64, metadata string) {
		if base < 0 || base > 1<<50 || len(metadata) > 4096 {
			return
		}
		p, _ := decodeProgress(base, [16]byte{1}, metadata)
		if !p.stale {
			require.GreaterOrEqual(t, p.base, base)
		}
		p.finish(p.base)
	})
}
