package batch

import (
	"github.com/quiesce/quiesce/codecs"
)

// what is due at a time.
type dueWhat int

const (
	notDue dueWhat = iota
	dueSeal
	dueComplete
	dueProgress
)

// dueAt says which deadline of an open batch has passed. A paused batch makes no progress and is not blamed for it.
func dueAt(l *life, now int64) dueWhat {
	d := l.Deadlines
	if d == nil || l.Start == nil {
		return notDue
	}
	switch {
	case d.SealBy > 0 && now >= d.SealBy && !l.sealed():
		return dueSeal
	case d.CompleteBy > 0 && now >= d.CompleteBy:
		return dueComplete
	case d.NoProgressFor > 0 && !l.Paused && now >= l.LastProgress+d.NoProgressFor:
		return dueProgress
	}
	return notDue
}

var dueReasons = map[dueWhat]string{
	dueSeal:     "not sealed by its deadline",
	dueComplete: "not complete by its deadline",
	dueProgress: "no progress within its deadline",
}

// due does what has become due at the append time of the event, before the event itself: the round then ended with the
// record before this one.
func (s *step) due() {
	r := s.r
	if l := r.run; l != nil && l.open() != nil {
		if what := dueAt(l, r.Now); what != notDue {
			s.expire(l, dueReasons[what])
		}
	}
	if l := r.run; l != nil && l.Start != nil && l.State != codecs.State_collected && r.Now >= s.m.collectAt(l) {
		s.collect(l)
	}
}

func (s *step) expire(l *life, reason string) {
	if l.Start.OnDeadline == "close" && l.sealed() {
		state := codecs.State_completed_with_failures
		if s.m.off.timeoutIsSuccess {
			state = codecs.State_completed
		}
		if !l.FailureSeen {
			l.FailureSeen = true
			s.event(codecs.TypeBatchFirstFailure, reason)
		}
		s.finishAt(s.off-1, state, codecs.TimedOut, reason)
		return
	}
	s.finishAt(s.off-1, codecs.State_expired, codecs.Outcome_unspecified, reason)
}

// forget drops reports whose START has not come for long. It does so after the event, which may be that START, or a
// report that has already been brought to its chunks.
func (s *step) forget() {
	r := s.r
	if l := r.run; l != nil && l.Start == nil && l.State != codecs.State_collected && r.Now >= orphanAt(s.m, l) {
		s.collect(l)
	}
	if n := r.next; n != nil && r.Now >= orphanAt(s.m, n) {
		r.retire(n)
		r.rest = 0
		r.park(nil)
	}
}

const never = int64(1) << 62

// collectAt is when a run is collected.
func (m *Machine) collectAt(l *life) int64 {
	switch {
	case l.Start == nil:
		return orphanAt(m, l)
	case l.open() != nil:
		return never
	case l.Start.Retention > 0:
		return l.EndedAt + l.Start.Retention
	}
	return l.EndedAt + m.cfg.Retention
}

// orphanAt is when reports without a START are forgotten.
func orphanAt(m *Machine, l *life) int64 { return l.LastProgress + m.cfg.OrphanTTL }

// collect turns a run into a small marker that still says how it ended: late records cannot make it live again.
func (s *step) collect(l *life) {
	s.collectAdded(l)
	final := clone(l.tally())
	s.r.retire(l)
	s.r.Past = s.r.Past[:len(s.r.Past)-1] // it still is the current one
	end := l.State
	marker := &codecs.RunRow{Run: l.Run, State: codecs.State_collected, PreviousState: end, First: l.First, Final: final,
		StartedAt: l.StartedAt, SealedAt: l.SealedAt, EndedAt: s.r.Now, Reason: l.Reason, Position: l.Position, StartedOffset: l.StartedOffset}
	if l.Start != nil {
		marker.Start = &codecs.BatchStart{Run: l.Run, Mode: l.Start.Mode, Labels: l.Start.Labels, Owner: l.Start.Owner, Topology: l.Start.Topology}
	}
	for _, rd := range l.Rounds {
		marker.Rounds = append(marker.Rounds, &codecs.RoundRow{Start: rd.Start, End: rd.End})
	}
	marker.Rounds[len(marker.Rounds)-1].End = min(uint64End(l), s.off)
	s.r.adopt(newLife(marker))
	s.r.Version++
}

// collectAdded orders the chunks away that tasks have added; those of the list belong to the job that listed it.
func (s *step) collectAdded(l *life) {
	if len(l.Growths) == 0 {
		return
	}
	d := &codecs.Dispatch{Run: l.Run, Round: l.round(), Queue: l.Start.GetQueue(), Collect: true}
	for _, c := range l.Chunks {
		if c.First >= l.Growths[0].Total {
			d.Chunks = append(d.Chunks, clone(c))
		}
	}
	s.out = append(s.out, codecs.Message{Topic: codecs.TopicDispatch, Key: s.r.Batch, Type: codecs.TypeDispatch, Data: d})
}

// uint64End is the last offset of the run's last round, as far as it goes.
func uint64End(l *life) int64 {
	if e := l.Rounds[len(l.Rounds)-1].End; e >= 0 {
		return e
	}
	return 1 << 62
}

// Deadline is when the row wants a nudge next, ms since the epoch; 0 = never.
func (m *Machine) Deadline(row codecs.Row) int64 {
	r := row.(*Row)
	at := never
	if l := r.run; l != nil {
		switch {
		case l.State == codecs.State_collected:
			if at = l.EndedAt + m.cfg.MarkerTTL; r.Now >= at {
				at = never
			}
		case l.open() != nil && l.Start != nil:
			at = min(at, m.next(l, r.Now))
		default:
			at = min(at, m.collectAt(l))
		}
	}
	if r.next != nil {
		at = min(at, orphanAt(m, r.next))
	}
	if at == never {
		return 0
	}
	return at
}

// next is the next deadline of an open batch, or the next progress event that has something to say.
func (m *Machine) next(l *life, now int64) int64 {
	at := never
	d := l.Deadlines
	if d.GetSealBy() > 0 && !l.sealed() {
		at = min(at, d.SealBy)
	}
	if d.GetCompleteBy() > 0 {
		at = min(at, d.CompleteBy)
	}
	if d.GetNoProgressFor() > 0 && !l.Paused {
		at = min(at, l.LastProgress+d.NoProgressFor)
	}
	if l.LastDone != l.sum.ended() {
		at = min(at, max(l.LastEvent+progressEvery, now))
	}
	return at
}

// Collect names what may be deleted: chunks of runs that are over, and a marker that has stood long enough.
func (m *Machine) Collect(row codecs.Row) (parts []string, self bool) {
	r := row.(*Row)
	if r.run == nil {
		return nil, len(r.Watchers) == 0
	}
	self = r.run.State == codecs.State_collected && r.next == nil && len(r.Watchers) == 0 && r.Now >= r.run.EndedAt+m.cfg.MarkerTTL
	return r.leftoverKeys(), self
}
