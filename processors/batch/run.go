package batch

import (
	"github.com/quiesce/quiesce/codecs"
)

// round is the number of the round in force, 1 at first.
func (l *life) round() uint32 { return uint32(max(len(l.Rounds), 1)) }

// sealed says that N is known: every feeder has sealed.
func (l *life) sealed() bool {
	if l.Start == nil || len(l.Feeders) == 0 {
		return false
	}
	for _, f := range l.Feeders {
		if !f.Sealed {
			return false
		}
	}
	return true
}

// total is N, where it is known.
func (l *life) total() uint32 {
	t := uint32(0)
	for _, f := range l.Feeders {
		t += f.Total
	}
	return t
}

func (l *life) marked() bool { return l.Start.GetMode() == modeMarkers }
func (l *life) queued() bool { return l.Start.GetQueue() != "" }

// units is the number of units that must report END.
func (l *life) units() int {
	n := 0
	for _, u := range l.Start.GetUnits() {
		n += int(u.Partitions)
	}
	return n
}

// roundAt is the round that was in force at an offset; 0 = none: before the run, or between the end of a round and the
// redrive that opened the next.
func (l *life) roundAt(off int64) uint32 {
	for i := len(l.Rounds) - 1; i >= 0; i-- {
		r := l.Rounds[i]
		if off >= r.Start {
			if r.End >= 0 && off > r.End {
				return 0
			}
			return uint32(i + 1)
		}
	}
	return 0
}

// open is the round that is in force now; nil = it has ended.
func (l *life) open() *codecs.RoundRow {
	if n := len(l.Rounds); n > 0 && l.Rounds[n-1].End < 0 {
		return l.Rounds[n-1]
	}
	return nil
}

// maxIndex bounds what may be a task: START's max_total.
func (l *life) maxIndex() uint32 {
	if m := l.Start.GetMaxTotal(); m > 0 {
		return m
	}
	return DefaultMaxTotal
}

// bound is the number of indexes of a feeder that could be tasks at an offset, in whole chunks: what lies above touches
// no chunk. Chunks trim the rest by themselves.
func (l *life) bound(feeder uint32, off int64) uint32 {
	started := l.Start != nil && off > l.StartedOffset
	if !started {
		return DefaultMaxTotal
	}
	if feeder >= uint32(len(l.Feeders)) {
		return 0
	}
	if f := l.Feeders[feeder]; f.Sealed && off > f.SealedAt {
		return l.totalAt(f.Total, off)
	}
	if l.Start.OpenChildren { // nothing was released yet, and chunks cannot trim what N will be
		return 0
	}
	return l.maxIndex()
}

// totalAt is N at an offset, for batches whose tasks add tasks.
func (l *life) totalAt(now uint32, off int64) uint32 {
	for i := len(l.Growths) - 1; i >= 0; i-- {
		if off > l.Growths[i].Offset {
			return l.Growths[i].Total
		}
	}
	if len(l.Growths) > 0 {
		return l.Growths[0].Total
	}
	return now
}

// tally is what readers see: the parts always add up to total once N is known.
func (l *life) tally() *codecs.Counts {
	if l.Final != nil {
		return l.Final
	}
	s := &l.sum
	c := &codecs.Counts{Ok: s.n[codecs.OK], Failed: s.n[codecs.Failed], Skipped: s.n[codecs.Skipped],
		Cancelled: s.n[codecs.Cancelled], TimedOut: s.n[codecs.TimedOut], Lost: s.n[codecs.Lost], Unknown: s.n[codecs.Unknown]}
	ended := s.ended()
	if !l.sealed() {
		c.Running = s.running
		return c
	}
	c.Total = l.total()
	left := c.Total - min(ended, c.Total)
	if l.marked() && len(l.Ends) == l.units() && !l.interrupted() {
		c.Failed, c.Unknown = l.markedFailures(left)
		return c
	}
	switch l.ClosedAs {
	case codecs.Cancelled:
		c.Cancelled += left
	case codecs.TimedOut:
		c.TimedOut += left
	default:
		c.Running = min(s.running, left)
		c.Pending = left - c.Running
	}
	return c
}

// interrupted says that the round ended without every task being attempted.
func (l *life) interrupted() bool { return l.ClosedAs != codecs.Outcome_unspecified }

// markedFailures says of a marked batch whose units all reported how many tasks failed and of how many nothing is known.
// Named failures are exact; without names the units' own sums are all there is, at most one failure a task.
func (l *life) markedFailures(left uint32) (failed, unknown uint32) {
	failed = l.sum.n[codecs.Failed]
	sum := uint64(0)
	for _, e := range l.Ends {
		sum += e.Failed
	}
	if l.sum.ended() == 0 {
		failed = uint32(min(sum, uint64(left)))
		return failed, left - failed
	}
	return failed, l.sum.n[codecs.Unknown] + left
}
