package batch

import (
	"fmt"
	"slices"

	"github.com/quiesce/quiesce/codecs"
)

// Bounds of what a row says of runs that are over. Where chunks lie too scattered, ranges that are close to each other
// are one and name chunks that never were; past that the rest is left out.
const (
	maxRunRanges = 2048 // of one run
	maxRanges    = 4096 // of all: the oldest go first
	maxSlack     = 3    // chunks that never were, between two
	maxLeftover  = 1 << 20
)

// retire remembers a run that is over; its chunks are collected.
func (r *Row) retire(l *life) {
	r.Past = append(r.Past, l.Run)
	for len(r.Past) > maxPast {
		r.spare(r.Past[0])
		r.Past = r.Past[1:]
	}
	if pairs := ranges(l.ids()); len(pairs) > 0 {
		r.Leftovers = append(r.Leftovers, &codecs.Leftover{Run: l.Run, Chunks: pairs})
	}
	for ; ; r.Leftovers = r.Leftovers[1:] {
		n := 0
		for _, o := range r.Leftovers {
			n += len(o.Chunks) / 2
		}
		if n <= maxRanges && r.leftover() <= maxLeftover {
			return
		}
	}
}

// spare takes the chunks of a run whose name may be used again from what is left over.
func (r *Row) spare(run string) {
	r.Leftovers = slices.DeleteFunc(r.Leftovers, func(o *codecs.Leftover) bool { return o.Run == run })
}

// ranges writes ascending ids as pairs: gap to the id after the pair before, number of ids.
func ranges(ids []uint32) (pairs []uint32) {
	for slack := uint32(0); slack <= maxSlack; slack = slack*2 + 1 {
		pairs = pairs[:0]
		next := uint32(0)
		for _, id := range ids {
			if n := len(pairs); n > 0 && id-next <= slack {
				pairs[n-1] += id - next + 1
			} else {
				pairs = append(pairs, id-next, 1)
			}
			next = id + 1
		}
		if len(pairs) <= 2*maxRunRanges {
			return pairs
		}
	}
	return pairs[:2*maxRunRanges]
}

// leftover is the number of chunks that the ranges name.
func (r *Row) leftover() (sum uint64) {
	for _, o := range r.Leftovers {
		for i := 0; i+1 < len(o.Chunks); i += 2 {
			sum += uint64(o.Chunks[i+1])
		}
	}
	return sum
}

// checkLeftovers refuses ranges that no row writes.
func (r *Row) checkLeftovers() error {
	if sum := r.leftover(); sum > maxLeftover {
		return fmt.Errorf("%d chunks are left over", sum)
	}
	return nil
}

// leftoverKeys are the keys of the chunks that may be deleted.
func (r *Row) leftoverKeys() (keys []string) {
	for _, o := range r.Leftovers {
		next := uint32(0)
		for i := 0; i+1 < len(o.Chunks); i += 2 {
			next += o.Chunks[i]
			for range o.Chunks[i+1] {
				keys = append(keys, codecs.ChunkKey(r.Batch, o.Run, next))
				next++
			}
		}
	}
	return keys
}
