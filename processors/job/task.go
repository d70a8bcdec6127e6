package job

import (
	"fmt"

	"github.com/quiesce/quiesce/codecs"
)

// taskCompleted takes the terminal outcome of a step's single task, or of a split that gave up. Attempts that will be
// retried are not reported.
func (s *step) taskCompleted(d *codecs.TaskCompleted) {
	r := s.r
	i := indexOf(r, d.Step)
	if i < 0 || d.Outcome == codecs.Outcome_unspecified {
		s.reject(fmt.Sprintf("step %q, outcome %s: no such step or outcome", d.Step, d.Outcome))
		return
	}
	st := r.Steps[i]
	single := r.Definition.Steps[i].Task != nil
	switch {
	case ended(r.State) || max(d.Round, 1) < st.Round:
		s.late()
		return
	case max(d.Round, 1) > st.Round:
		s.audit().Stale++
		return
	case single && st.State != codecs.StepState_running, !single && st.State != codecs.StepState_splitting:
		s.duplicate() // first outcome in log order stands
		return
	case !single && d.Outcome == codecs.OK:
		s.reject(fmt.Sprintf("step %s: a split ends with split.proposed", d.Step))
		return
	}
	st.Attempts = d.Attempt
	state, reason := taskState(d)
	if state == codecs.StepState_completed {
		if n := s.inline() + len(d.Result.GetData()); n > maxResults || len(d.Result.GetData()) > maxInline {
			state = codecs.StepState_failed
			reason = fmt.Sprintf("result of %d bytes by value, %d in this job: return a reference", len(d.Result.GetData()), n)
		} else {
			st.Result = d.Result
		}
	}
	s.timing = d.Timing
	s.endStep(i, state, reason)
	s.timing = nil
	s.advance()
}

func taskState(d *codecs.TaskCompleted) (codecs.StepState_Code, string) {
	switch d.Outcome {
	case codecs.OK, codecs.Skipped:
		return codecs.StepState_completed, d.Reason
	case codecs.Cancelled:
		return codecs.StepState_cancelled, d.Reason
	case codecs.Failed:
		return codecs.StepState_failed, d.Reason
	}
	return codecs.StepState_failed, fmt.Sprintf("%s: %s", d.Outcome, d.Reason)
}

// inline is the number of payload bytes that the row carries.
func (s *step) inline() int {
	n := len(s.r.Input.GetData())
	for _, st := range s.r.Steps {
		n += len(st.Result.GetData())
	}
	return n
}
