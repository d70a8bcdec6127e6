package batch

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/quiesce/quiesce/codecs"
)

// report takes completions. The chunks have already sorted out what is new.
func (s *step) report(d *codecs.BatchReport) {
	r := s.r
	l := r.life(d.Run, s.off)
	if l == nil {
		if !r.fresh(d.Run) || max(d.Round, 1) != 1 {
			s.audit().Stale += size(d)
			return
		}
		l = newRun(d.Run, s.off)
		l.LastProgress = r.Now
		if r.run == nil {
			r.adopt(l)
		} else {
			r.park(l)
		}
	}
	switch s.m.gate(l, s.off, d) {
	case late:
		s.late(l, d)
		return
	case stale:
		s.audit().Stale += size(d)
		return
	case unexpected:
		s.audit().Unexpected += size(d)
		return
	}
	if s.m.full(l, s.off, d) {
		if l.FullAt == 0 {
			l.FullAt = s.off
		}
		s.audit().Stale += size(d)
		return
	}
	if l.Start == nil {
		l.Parked++
		if n := max(d.Legs, 1); l.ParkedLegs == 0 {
			l.ParkedLegs = n
		} else if l.ParkedLegs != n {
			l.ParkedLegs = codecs.MaxLegs + 1 // they contradict each other, and every START
		}
	}
	s.take(l, d)
	if d.Children != nil {
		s.children(l, d)
	}
	if l == r.run && l.Start != nil {
		s.evaluate()
		if l.open() != nil && r.Now-l.LastEvent >= progressEvery {
			s.progress()
		}
	}
}

const progressEvery = 1000 // ms

// take brings the absolute counts of the chunks into the header, and what is new into the outputs.
func (s *step) take(l *life, d *codecs.BatchReport) {
	known := uint64(0)
	started := uint64(0)
	told := 0
	for _, p := range s.parts {
		c := p.(*Chunk)
		if s.m.off.deltas {
			s.addDelta(l, c)
		} else {
			l.set(c.id, c.countsIn(l.round()))
		}
		known += c.delta.again + c.delta.beyond + c.delta.started
		started += c.delta.started
		if a := c.delta.again + c.delta.beyond; a > 0 {
			s.audit().Duplicates += c.delta.again
			s.audit().Unexpected += c.delta.beyond
		}
		for _, f := range c.delta.fresh {
			known += uint64(f.hi - f.lo)
			if l == s.r.run && l.Start != nil {
				s.r.collectFresh(c.feeder(), f.outcome, c.base()+f.lo, c.base()+f.hi-1)
				if d != nil {
					s.r.attempts += uint64(f.hi-f.lo) * uint64(max(d.Items[f.item].Attempt, 1))
				}
			}
		}
		for _, f := range c.reasons() {
			if d != nil && f.outcome != codecs.OK {
				told = s.tellReason(l, c, d, f, told)
			}
		}
		if c.delta.news || c.delta.started > 0 {
			l.LastProgress = s.r.Now
		}
	}
	if d == nil {
		return
	}
	if known == 0 || len(d.Items) != 1 || d.Items[0].Bitmap != nil || d.Items[0].Last != nil {
		s.unseen(l, d)
	}
	if d.Timing != nil && len(s.fresh()) > 0 {
		s.r.timing(d.Timing)
	}
	if s.m.off.countReports {
		l.sum.n[codecs.OK]++
	}
}

// unseen counts the indexes of a report that no chunk could hold.
func (s *step) unseen(l *life, d *codecs.BatchReport) {
	bound := l.bound(d.Feeder, s.off)
	for _, it := range d.Items {
		_ = codecs.ForEachRange(it, func(first, last uint32) {
			edge := (uint64(bound) + codecs.ChunkSize - 1) &^ (codecs.ChunkSize - 1) // chunks trim below it
			if bound&0xffff == 0 {
				edge = uint64(bound)
			}
			if uint64(last) >= edge {
				s.audit().Unexpected += uint64(last) - max(uint64(first), edge) + 1
			}
		})
	}
}

func (s *step) fresh() []fresh {
	for _, p := range s.parts {
		if f := p.(*Chunk).delta.fresh; len(f) > 0 {
			return f
		}
	}
	return nil
}

// tellReason announces why tasks of one chunk did not end ok: the first failure as an event, all of them as outcomes.
func (s *step) tellReason(l *life, c *Chunk, d *codecs.BatchReport, f fresh, told int) int {
	lo, hi := c.base()+f.lo, c.base()+f.hi-1
	it := d.Items[f.item]
	if codecs.IsFailure(f.outcome) && !l.FailureSeen && l == s.r.run && l.Start != nil {
		l.FailureSeen = true
		s.event(codecs.TypeBatchFirstFailure, joined(fmt.Sprintf("task %d: %s", lo, f.outcome), ": ", clip(it.Reason)))
	}
	if told >= maxReasons {
		return told
	}
	o := &codecs.TaskOutcome{Index: lo, Outcome: f.outcome, Reason: clip(it.Reason), Attempt: it.Attempt, Round: max(d.Round, 1),
		Reporter: strings.Clone(d.Reporter), At: s.r.Now, Leg: it.Leg, Feeder: d.Feeder}
	if hi > lo {
		o.Last = hi
	}
	s.out = append(s.out, codecs.Message{Topic: codecs.TopicOutcomes, Key: outcomeKey(s.r.Batch, l.Run, d.Feeder, lo),
		Type: codecs.TypeTaskOutcome, Data: o})
	return told + 1
}

// outcomeKey is the key of a task in quiesce.outcomes; further feeders are told apart after the index.
func outcomeKey(batch, run string, feeder, index uint32) string {
	k := codecs.OutcomeKey(batch, run, index)
	if feeder > 0 {
		k += fmt.Sprintf("\x00%d", feeder)
	}
	return k
}

// joined appends what is known.
func joined(s, with, more string) string {
	if more == "" {
		return s
	}
	return s + with + more
}

// clip bounds a reason and copies it out of the record.
func clip(s string) string {
	if len(s) > maxReason {
		s = s[:maxReason]
		for !utf8.ValidString(s) {
			s = s[:len(s)-1]
		}
	}
	return strings.Clone(s)
}

// late audits completions that came after their round had ended.
func (s *step) late(l *life, d *codecs.BatchReport) {
	n := size(d)
	s.audit().Late += n
	if l.Start == nil || l != s.r.run {
		return
	}
	s.event(codecs.TypeBatchLate, joined(fmt.Sprintf("%d completions of round %d", n, max(d.Round, 1)), " from ", d.Reporter))
	if max(d.Round, 1) == l.round() {
		l.LateEnded += uint32(min(n, 1<<31))
		s.drain(l)
	}
}

// size is the number of tasks that a report names.
func size(d *codecs.BatchReport) uint64 {
	n := uint64(0)
	for _, it := range d.Items {
		if k, _, err := codecs.ItemSize(it); err == nil {
			n += k
		}
	}
	return n
}

// children gives the tasks that a task adds the next indexes, in log order.
func (s *step) children(l *life, d *codecs.BatchReport) {
	n := d.Children.Count
	switch {
	case l != s.r.run || !l.sealed() || !l.Start.OpenChildren:
		s.reject("/children: the batch is not sealed, or not open for children")
		return
	case len(s.fresh()) == 0: // the completion was a duplicate, and so are its children
		return
	case uint64(l.total())+uint64(n) > uint64(l.maxIndex()):
		s.contradict(fmt.Sprintf("tasks added %d tasks to %d: max_total is %d", n, l.total(), l.maxIndex()))
		return
	case len(l.Growths) >= maxGrowths:
		s.contradict(fmt.Sprintf("too large: more than %d reports added tasks", maxGrowths))
		return
	}
	f := l.Feeders[0]
	if len(l.Growths) == 0 {
		l.Growths = append(l.Growths, &codecs.Growth{Offset: f.SealedAt, Total: f.Total})
	}
	if d.Children.Chunk != nil {
		c := clone(d.Children.Chunk)
		c.First = f.Total
		l.Chunks = append(l.Chunks, c)
	}
	f.Total += n
	l.Growths = append(l.Growths, &codecs.Growth{Offset: s.off, Total: f.Total})
}

// addDelta is what a header must not do.
func (s *step) addDelta(l *life, c *Chunk) {
	for _, f := range c.delta.fresh {
		l.sum.n[f.outcome] += f.hi - f.lo
	}
}
