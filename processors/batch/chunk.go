package batch

import (
	"github.com/bits-and-blooms/bitset"

	"github.com/quiesce/quiesce/codecs"
)

// outcomes is the number of outcome codes, unspecified with them.
const outcomes = int(codecs.Unknown) + 1

// reopened are the outcomes that a redrive makes pending again.
var reopened = [outcomes]bool{codecs.Failed: true, codecs.TimedOut: true, codecs.Lost: true, codecs.Cancelled: true}

// Chunk is the part row of up to 65,536 tasks: per leg, which of them have which outcome. The first outcome of a task and
// leg in log order stands; a task is terminal when every leg has an outcome.
type Chunk struct {
	key     string
	id      uint32 // feeder << 16 | index >> 16
	round   uint32
	legs    []*leg
	started bitset.BitSet // without an outcome
	limit   uint32        // indexes at or above it are no tasks; ChunkSize = not known

	n       [outcomes]uint32 // terminal tasks by outcome
	running uint32

	delta delta
	off   mutants
	exact int    // size of the row when it was looked at last, 0 = not yet
	news  uint32 // changes since then

	unknown []byte // fields of a later release
}

// delta is what the last event changed: scratch for the header's step, never stored.
type delta struct {
	fresh   []fresh // tasks that became terminal, ascending within an item
	worse   []fresh // with several legs: tasks of which a leg said something worse than the legs before
	again   uint64  // indexes that had an outcome
	beyond  uint64  // indexes that are no task
	started uint64
	news    bool // a leg said what was not known
}

// fresh is a range of tasks of one chunk that became terminal with one outcome by one item of the report.
type fresh struct {
	lo, hi  uint32 // [lo, hi), low 16 bits
	outcome codecs.Outcome_Code
	item    int
}

func newChunk(key string, off mutants) *Chunk {
	return &Chunk{key: key, id: chunkID(key), round: 1, limit: codecs.ChunkSize, off: off}
}

// chunkID reads the id at the end of a chunk's key.
func chunkID(key string) uint32 {
	if len(key) < 4 {
		return 0
	}
	b := key[len(key)-4:]
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

func (c *Chunk) feeder() uint32 { return c.id >> 16 }

// base is the index of the chunk's first task.
func (c *Chunk) base() uint32 { return c.id << 16 }

// StepPart applies one event to one chunk. It never reads the header.
func (m *Machine) StepPart(part codecs.Row, _ int64, ev *codecs.Event) {
	c := part.(*Chunk)
	c.delta = delta{fresh: c.delta.fresh[:0], worse: c.delta.worse[:0]}
	switch d := ev.Data.(type) {
	case *codecs.BatchReport:
		c.report(d)
	case *codecs.BatchSeal:
		c.seal(d)
	}
}

// report takes what falls into this chunk. That may be nothing, see withCursor: then nothing changes.
func (c *Chunk) report(d *codecs.BatchReport) {
	if d.Feeder != c.feeder() {
		return
	}
	for i, it := range d.Items {
		codecs.ForEachRangeOf(it, c.id&0xffff, func(first, last uint32) {
			c.lift(max(d.Round, 1))
			c.grow(int(max(d.Legs, 1)))
			c.span(i, it, first&0xffff, last&0xffff+1)
		})
	}
}

// span takes the indexes [a, b) of this chunk.
func (c *Chunk) span(item int, it *codecs.ReportItem, a, b uint32) {
	if b > c.limit && !c.off.countUnexpected {
		c.delta.beyond += uint64(b - max(a, c.limit))
		b = c.limit
	}
	if a >= b {
		return
	}
	if it.Outcome == codecs.Outcome_unspecified {
		c.start(a, b)
		return
	}
	if int(it.Leg) >= len(c.legs) {
		c.delta.beyond += uint64(b - a)
		return
	}
	c.add(item, c.legs[it.Leg], a, b, it.Outcome)
}

// start marks tasks as running.
func (c *Chunk) start(a, b uint32) {
	for i := uint(a); i < uint(b); i++ {
		if !c.legs[0].done.Test(i) && !c.started.Test(i) {
			c.started.Set(i)
			c.running++
			c.delta.started++
			c.news++
		}
	}
}

// add gives the indexes [a, b) an outcome on one leg, where they have none.
func (c *Chunk) add(item int, l *leg, a, b uint32, o codecs.Outcome_Code) {
	if b == a+1 && len(c.legs) == 1 { // the bulk of all traffic
		if l.done.Test(uint(a)) {
			c.delta.again++
			return
		}
		l.set(uint(a), o)
		c.news++
		c.delta.news = true
		c.terminal(item, a, b, o)
		return
	}
	for at := a; at < b; {
		next, ok := l.done.NextClear(uint(at))
		if !ok {
			next = max(uint(at), l.done.Len())
		}
		lo := min(uint32(next), b)
		c.delta.again += uint64(lo - at)
		if lo == b {
			return
		}
		hi := b
		if set, ok := l.done.NextSet(uint(lo)); ok {
			hi = min(uint32(set), b)
		}
		l.setRange(uint(lo), uint(hi), o)
		c.news += hi - lo
		c.delta.news = true
		c.ended(item, lo, hi, o)
		at = hi
	}
}

// ended finds which tasks of a range that a leg has just ended are terminal now.
func (c *Chunk) ended(item int, lo, hi uint32, o codecs.Outcome_Code) {
	if len(c.legs) == 1 || c.off.firstLeg {
		c.terminal(item, lo, hi, o)
		return
	}
	for i := lo; i < hi; i++ {
		if o != codecs.OK && c.worst(uint(i), o) {
			c.delta.worse = extend(c.delta.worse, fresh{i, i + 1, o, item})
		}
		if w, ok := c.outcome(uint(i)); ok {
			c.terminal(item, i, i+1, w)
		}
	}
}

// worst says that no other leg has said anything as bad of a task.
func (c *Chunk) worst(i uint, o codecs.Outcome_Code) bool {
	same := 0
	for _, l := range c.legs {
		if !l.done.Test(i) {
			continue
		}
		switch x := l.outcome(i); {
		case x == o:
			same++
		case codecs.Worst(x, o) == x:
			return false
		}
	}
	return same == 1
}

// reasons are the tasks of which the event says why they did not end ok.
func (c *Chunk) reasons() []fresh {
	if len(c.legs) > 1 {
		return c.delta.worse
	}
	return c.delta.fresh
}

// extend adds a range, to the last one where it goes on from there.
func extend(to []fresh, f fresh) []fresh {
	if n := len(to); n > 0 {
		if last := &to[n-1]; last.hi == f.lo && last.outcome == f.outcome && last.item == f.item {
			last.hi = f.hi
			return to
		}
	}
	return append(to, f)
}

// terminal counts tasks that have become terminal.
func (c *Chunk) terminal(item int, lo, hi uint32, o codecs.Outcome_Code) {
	c.n[o] += hi - lo
	if c.running > 0 {
		for i := lo; i < hi; i++ {
			if c.started.Test(uint(i)) {
				c.started.Clear(uint(i))
				c.running--
			}
		}
	}
	c.delta.fresh = extend(c.delta.fresh, fresh{lo, hi, o, item})
}

// outcome is the worst of a task's legs; false while a leg has none.
func (c *Chunk) outcome(i uint) (codecs.Outcome_Code, bool) {
	worst := codecs.Outcome_unspecified
	for _, l := range c.legs {
		if !l.done.Test(i) {
			return worst, false
		}
		worst = codecs.Worst(worst, l.outcome(i))
	}
	return worst, len(c.legs) > 0
}

// grow makes room for the legs that a report names. Where reports before START contradict each other, what was terminal
// is not any more.
func (c *Chunk) grow(legs int) {
	had := len(c.legs)
	for len(c.legs) < min(legs, codecs.MaxLegs) {
		c.legs = append(c.legs, &leg{})
	}
	if had > 0 && len(c.legs) > had {
		c.recount()
	}
}

// lift brings the chunk into a round: what that round runs again has no outcome any more.
func (c *Chunk) lift(round uint32) {
	if round <= c.round || c.off.oldFailuresCount {
		return
	}
	c.round = round
	c.started.ClearAll()
	for _, l := range c.legs {
		for o := range l.by {
			if reopened[o] {
				l.done.InPlaceDifference(&l.by[o])
				l.by[o] = bitset.BitSet{}
			}
		}
	}
	c.recount()
}

// countsIn is what the chunk counts in a round, whether it has been lifted into it or not.
func (c *Chunk) countsIn(round uint32) counts {
	n := counts{n: c.n, running: c.running}
	if round > c.round && !c.off.oldFailuresCount {
		n.reopen()
	}
	return n
}

// seal learns how many of the feeder's indexes are tasks, and forgets the others.
func (c *Chunk) seal(d *codecs.BatchSeal) {
	if d.Feeder != c.feeder() {
		return
	}
	lo := uint64(c.base())
	c.limit = uint32(min(max(uint64(d.Total), lo)-lo, codecs.ChunkSize))
	if c.off.countUnexpected {
		return
	}
	for _, l := range c.legs {
		c.delta.beyond += uint64(cutAbove(&l.done, c.limit))
		for o := range l.by {
			cutAbove(&l.by[o], c.limit)
		}
	}
	cutAbove(&c.started, c.limit)
	c.recount()
}

// cutAbove removes the indexes at and above limit and returns how many there were.
func cutAbove(s *bitset.BitSet, limit uint32) uint {
	n := uint(0)
	for i, ok := s.NextSet(uint(limit)); ok; i, ok = s.NextSet(i + 1) {
		s.Clear(i)
		n++
	}
	return n
}

// recount rebuilds the counts from the sets.
func (c *Chunk) recount() {
	c.n = [outcomes]uint32{}
	c.running = uint32(c.started.Count())
	for _, l := range c.legs {
		l.recount()
	}
	switch len(c.legs) {
	case 0:
	case 1:
		c.n = c.legs[0].n
	default:
		done := c.legs[0].done.Clone()
		for _, l := range c.legs[1:] {
			done.InPlaceIntersection(&l.done)
		}
		for i, ok := done.NextSet(0); ok; i, ok = done.NextSet(i + 1) {
			o, _ := c.outcome(i)
			c.n[o]++
		}
	}
}
