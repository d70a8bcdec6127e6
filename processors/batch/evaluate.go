package batch

import (
	"fmt"
	"slices"

	"github.com/quiesce/quiesce/codecs"
)

// evaluate looks whether the round has ended, by the failure policy or because every task has an outcome. It is a pure
// function of what is durable: calling it again changes nothing.
func (s *step) evaluate() {
	l := s.r.run
	if l == nil || l.open() == nil || l.Start == nil || l.Paused {
		return
	}
	if reason := s.violated(l, false); reason != "" {
		s.finish(codecs.State_failed, codecs.Cancelled, reason)
		return
	}
	if !l.sealed() {
		return
	}
	if l.marked() {
		if len(l.Ends) < l.units() {
			return
		}
	} else if l.sum.ended() < l.total() {
		return
	}
	s.event(codecs.TypeBatchAttempted, "")
	if reason := s.violated(l, true); reason != "" {
		s.finish(codecs.State_failed, codecs.Outcome_unspecified, reason)
		return
	}
	s.finish(s.completed(l), codecs.Outcome_unspecified, "")
}

func (s *step) completed(l *life) codecs.State_Code {
	c := l.tally()
	if c.Failed+c.TimedOut+c.Lost > 0 {
		return codecs.State_completed_with_failures
	}
	return codecs.State_completed
}

// violated judges the failure policy; atEnd: nothing more will come.
func (s *step) violated(l *life, atEnd bool) string {
	p := l.Policy
	failures := l.sum.failures()
	if l.marked() && atEnd {
		failures = l.tally().Failed
	}
	if failures == 0 {
		return ""
	}
	switch p.GetKind() {
	case "fail_fast":
		return fmt.Sprintf("fail_fast: %d failed", failures)
	case "tolerate":
		n, millionths, err := codecs.ParseTolerate(p.Tolerate)
		if err != nil {
			return ""
		}
		if !millionths {
			if failures > n {
				return fmt.Sprintf("tolerate %s: %d failed", p.Tolerate, failures)
			}
			return ""
		}
		attempted := l.sum.n[codecs.OK] + l.sum.n[codecs.Unknown] + failures
		if attempted < p.MinSample {
			if !atEnd {
				return ""
			}
			attempted = l.total()
		}
		if uint64(failures)*1_000_000 > uint64(n)*uint64(attempted) {
			return fmt.Sprintf("tolerate %s: %d of %d failed", p.Tolerate, failures, attempted)
		}
	}
	return ""
}

// terminalEvents by state.
var terminalEvents = map[codecs.State_Code]string{
	codecs.State_completed: codecs.TypeBatchCompleted, codecs.State_completed_with_failures: codecs.TypeBatchCompletedWithFailures,
	codecs.State_failed: codecs.TypeBatchFailed, codecs.State_cancelled: codecs.TypeBatchCancelled,
	codecs.State_expired: codecs.TypeBatchExpired, codecs.State_inconsistent: codecs.TypeBatchInconsistent,
}

// finish ends the round: one terminal event, and nothing but redrive changes the result. Open tasks become closed.
func (s *step) finish(state codecs.State_Code, closed codecs.Outcome_Code, reason string) {
	s.finishAt(s.off, state, closed, reason)
}

// finishAt ends the round with off as the last offset that may belong to it.
func (s *step) finishAt(off int64, state codecs.State_Code, closed codecs.Outcome_Code, reason string) {
	l := s.r.run
	l.open().End = off
	l.State, l.EndedAt, l.Reason, l.Paused = state, s.r.Now, reason, false
	if !l.sealed() || l.total() > l.sum.ended() && !(l.marked() && len(l.Ends) == l.units()) {
		l.ClosedAs = closed
	}
	l.Position = fmt.Sprintf("%d:%d", s.ev.Partition, s.off)
	s.r.Version++
	m := s.lifecycle(terminalEvents[state], reason)
	m.ID = codecs.TerminalID(s.r.Batch, l.Run, l.round())
	if s.m.off.terminalWithoutRnd {
		m.ID = codecs.TerminalID(s.r.Batch, l.Run, 1)
	}
	s.out = append(s.out, m)
	s.tellOwner(l)
	s.drain(l)
}

// tellOwner sends the end of the batch to the job whose step it is, and to jobs that await it.
func (s *step) tellOwner(l *life) {
	if o := l.Start.GetOwner(); o.GetJob() != "" {
		s.tell(l, ownerKey(o), o.Step)
	}
	for _, key := range s.r.Watchers {
		s.tell(l, key, "")
	}
	s.r.Watchers = nil
}

// ownerKey is the key of the job's row.
func ownerKey(o *codecs.Owner) string {
	if o.Key != "" {
		return o.Key
	}
	return o.Job
}

func (s *step) tell(l *life, key, jobStep string) {
	state := l.State
	if state == codecs.State_collected {
		state = l.PreviousState
	}
	s.out = append(s.out, codecs.Message{Topic: codecs.TopicJobs, Key: key, Type: codecs.TypeBatchEnded, Due: true, Trace: s.ev.Traceparent,
		Data: &codecs.BatchEnded{Batch: s.r.Batch, Run: l.Run, Round: l.round(), Step: jobStep, State: state,
			Counts: clone(l.tally()), Reason: l.Reason}})
}

// contradict ends the batch as INCONSISTENT: it names what does not fit, and guesses nothing. After an end it only audits.
func (s *step) contradict(cause string) {
	l := s.r.run
	if l.open() == nil {
		s.event(codecs.TypeBatchAudit, cause)
		return
	}
	if !slices.Contains(l.Causes, cause) && len(l.Causes) < maxCauses {
		l.Causes = append(l.Causes, cause)
	}
	s.finish(codecs.State_inconsistent, codecs.Outcome_unspecified, cause)
}

// drain says once that nothing of an interrupted queue batch is in flight any more.
func (s *step) drain(l *life) {
	if !l.queued() || l.Drained || l.open() != nil || !l.interrupted() && l.State != codecs.State_inconsistent {
		return
	}
	inFlight := int64(l.Released) - int64(l.sum.ended()-min(l.DoneBefore, l.sum.ended())) - int64(l.LateEnded)
	if inFlight <= 0 {
		l.Drained = true
		s.event(codecs.TypeBatchDrained, "")
	}
}
