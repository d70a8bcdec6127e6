package batch

import (
	"github.com/bits-and-blooms/bitset"

	"github.com/quiesce/quiesce/codecs"
)

// leg is what one leg said: sets of indexes by outcome, and the union of them.
type leg struct {
	done bitset.BitSet
	by   [outcomes]bitset.BitSet // ok is done without the others and stays empty
	n    [outcomes]uint32        // how many there are

	unknown []byte // fields of a later release
}

func (l *leg) set(i uint, o codecs.Outcome_Code) {
	l.done.Set(i)
	l.n[o]++
	if o != codecs.OK {
		l.by[o].Set(i)
	}
}

// setRange sets [lo, hi), all of which are clear.
func (l *leg) setRange(lo, hi uint, o codecs.Outcome_Code) {
	flip(&l.done, lo, hi)
	l.n[o] += uint32(hi - lo)
	if o != codecs.OK {
		flip(&l.by[o], lo, hi)
	}
}

func flip(s *bitset.BitSet, lo, hi uint) {
	s.Set(hi - 1) // make room: FlipRange does not grow a set
	s.Clear(hi - 1)
	s.FlipRange(lo, hi)
}

func (l *leg) outcome(i uint) codecs.Outcome_Code {
	for o := codecs.Failed; o <= codecs.Unknown; o++ {
		if l.by[o].Test(i) {
			return o
		}
	}
	return codecs.OK
}

// recount rebuilds the counts from the sets.
func (l *leg) recount() {
	ok := uint32(l.done.Count())
	for o := codecs.Failed; o <= codecs.Unknown; o++ {
		l.n[o] = uint32(l.by[o].Count())
		ok -= l.n[o]
	}
	l.n[codecs.OK] = ok
}

// room is the most that the sets take in a row.
func (l *leg) room() int {
	done, sum := uint32(0), 0
	for o, n := range l.n {
		done += n
		if o != int(codecs.OK) {
			sum += setRoom(n)
		}
	}
	return sum + setRoom(done)
}
