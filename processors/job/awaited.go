package job

import (
	"fmt"
	"slices"

	"github.com/quiesce/quiesce/codecs"
)

// batchEnded takes the end of a step's batch, or of a batch that the job awaits.
func (s *step) batchEnded(d *codecs.BatchEnded) {
	r := s.r
	if i := slices.Index(r.AwaitsBatches, d.Batch); i >= 0 {
		r.AwaitsBatches = slices.Delete(r.AwaitsBatches, i, i+1)
		s.advance()
		return
	}
	for i, st := range r.Steps {
		if st.Batch == d.Batch && d.Batch != "" {
			s.stepBatchEnded(i, d)
			return
		}
	}
	s.audit().Unexpected++
}

// stepBatchEnded ends step i with its batch. A batch that completed cannot be redriven, so its end counts whatever round
// the step waits for.
func (s *step) stepBatchEnded(i int, d *codecs.BatchEnded) {
	st := s.r.Steps[i]
	if d.Run != st.Run {
		s.audit().Stale++
		return
	}
	if d.Refused != "" {
		s.batchRefused(i, d)
		return
	}
	state, ok := stepStateOf[d.State]
	if !ok {
		s.reject(fmt.Sprintf("batch %s ended as %s", d.Batch, d.State))
		return
	}
	final := d.State == codecs.State_completed
	if d.Round >= st.BatchRound || final {
		st.BatchState, st.Counts = d.State, d.Counts
	}
	switch {
	case ended(s.r.State):
		s.late()
	case st.State != codecs.StepState_running:
		s.duplicate()
	case d.Round < st.BatchRound && !final:
		s.late()
	default:
		s.endStep(i, state, d.Reason)
		s.advance()
	}
}

// batchRefused fails a step whose batch does not run: its id belongs to somebody else; or it does not run again, because it
// was collected, is inconsistent, or has no round left.
func (s *step) batchRefused(i int, d *codecs.BatchEnded) {
	st := s.r.Steps[i]
	if ended(s.r.State) || st.State != codecs.StepState_running {
		s.late()
		return
	}
	verb := "redrive: "
	if st.BatchRound == 1 {
		verb = "start: "
	}
	if d.Round > 0 {
		st.BatchRound = d.Round
	}
	s.endStep(i, codecs.StepState_failed, verb+d.Refused)
	s.advance()
}

// stepStateOf maps the end of a batch to the end of its step. An inconsistent batch fails the step, with its reason.
var stepStateOf = map[codecs.State_Code]codecs.StepState_Code{
	codecs.State_completed:               codecs.StepState_completed,
	codecs.State_completed_with_failures: codecs.StepState_completed_with_failures,
	codecs.State_failed:                  codecs.StepState_failed,
	codecs.State_cancelled:               codecs.StepState_cancelled,
	codecs.State_expired:                 codecs.StepState_expired,
	codecs.State_inconsistent:            codecs.StepState_failed,
}

// awaitedJob takes the end of a job that this one awaits; no state says that there is no such job.
func (s *step) awaitedJob(d *codecs.JobEnded) {
	i := slices.Index(s.r.AwaitsJobs, d.Job)
	if i < 0 {
		s.duplicate()
		return
	}
	if d.State == codecs.JobState_unspecified {
		reason := "awaits job " + printable(d.Job) + ", which does not exist"
		s.stopSteps(codecs.StepState_cancelled, reason)
		s.end(codecs.JobState_failed, reason)
		return
	}
	s.r.AwaitsJobs = slices.Delete(s.r.AwaitsJobs, i, i+1)
	s.advance()
}

// watch remembers that another job awaits this one, or tells it at once.
func (s *step) watch(key string) string {
	r := s.r
	if ended(r.State) {
		s.tell(key)
		return ""
	}
	if slices.Contains(r.Watchers, key) {
		return ""
	}
	if len(r.Watchers) >= maxWatchers {
		return fmt.Sprintf("at most %d jobs may await one", maxWatchers)
	}
	r.Watchers = append(r.Watchers, key)
	return ""
}

func (s *step) tell(key string) {
	s.emit(codecs.Message{Topic: codecs.TopicJobs, Key: key, Type: codecs.TypeJobEnded, Due: true,
		Data: &codecs.JobEnded{Job: s.r.Key, State: s.r.State}})
}
