package batch

import (
	"fmt"

	"github.com/quiesce/quiesce/codecs"
)

// redrive opens the next round of the run: tasks that failed, timed out, were lost or cancelled, or never ran, become
// pending again; ok and skipped stay, and so does N. A batch whose tasks all were ok when it was cancelled, or when its
// deadline passed while it was paused, completes in it.
func (s *step) redrive(l *life, a *codecs.CommandArgs) string {
	switch {
	case l.open() != nil:
		return "the batch is open"
	case l.State == codecs.State_collected:
		return "the batch is collected"
	case l.State == codecs.State_inconsistent:
		return "the batch is inconsistent: " + l.Reason
	case !l.sealed():
		return "the batch was never sealed: its tasks are not known"
	case len(a.GetOutcomes()) > 0:
		return "/outcomes: a redrive takes every task that is not ok or skipped"
	case l.marked():
		return "a batch in mode markers has no task to name: feed it again under a new run"
	case l.State == codecs.State_completed && l.sum.n[codecs.OK]+l.sum.n[codecs.Skipped]+l.sum.n[codecs.Unknown] >= l.total():
		return "nothing to redrive: every task is ok or skipped"
	}
	if reason := s.reopen(l); reason != "" {
		return reason
	}
	if a.GetDeadlines() != nil {
		l.Deadlines = absolute(a.Deadlines, s.r.Now)
	}
	return ""
}

// reopen starts the next round.
func (s *step) reopen(l *life) string {
	if len(l.Rounds) >= maxRounds {
		return fmt.Sprintf("at most %d rounds", maxRounds)
	}
	s.out = s.m.Cut(s.r, s.out) // what it tells is of this round
	l.PreviousState = l.State
	l.State = codecs.State_sealed
	if !l.sealed() {
		l.State = codecs.State_open
	}
	l.Rounds = append(l.Rounds, &codecs.RoundRow{Start: s.off, End: -1})
	l.Reason, l.Position, l.EndedAt, l.ClosedAs, l.FailureSeen, l.Drained = "", "", 0, codecs.Outcome_unspecified, false, false
	l.LastProgress, l.Released, l.Cursor, l.LateEnded, l.Ends, l.endsCost = s.r.Now, 0, 0, 0, nil, 0
	for id, c := range l.chunks {
		again := *c
		if !s.m.off.oldFailuresCount {
			again.reopen()
		}
		l.set(id, again)
	}
	l.DoneBefore = l.sum.ended()
	if d := l.Deadlines; d != nil { // what has passed would end the round at once
		if d.CompleteBy <= s.r.Now {
			d.CompleteBy = 0
		}
		if d.SealBy <= s.r.Now {
			d.SealBy = 0
		}
	}
	return ""
}

// refuse tells a job that its redrive is refused. Of an open batch it hears the end.
func (s *step) refuse(d *codecs.BatchCommand, reason string) {
	key, l := clip(d.Args.GetWatcher()), s.r.run
	if d.Verb != "redrive" || key == "" || l != nil && l.open() != nil && d.Args.Run == l.Run {
		return
	}
	m := &codecs.BatchEnded{Batch: s.r.Batch, Run: d.Args.Run, Refused: clip(reason)}
	if l != nil && l.Run == m.Run {
		m.Round, m.State, m.Counts = l.round(), l.State, clone(l.tally())
	}
	s.out = append(s.out, codecs.Message{Topic: codecs.TopicJobs, Key: key, Type: codecs.TypeBatchEnded, Due: true, Trace: s.ev.Traceparent, Data: m})
}
