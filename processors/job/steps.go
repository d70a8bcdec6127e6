package job

import (
	"fmt"

	"github.com/quiesce/quiesce/codecs"
)

// advance starts what can start and ends what has ended. It is called after every change and does nothing twice.
func (s *step) advance() {
	r := s.r
	if r.State == codecs.JobState_waiting {
		if r.AwaitsSlot || len(r.AwaitsBatches)+len(r.AwaitsJobs) > 0 || r.Paused {
			return
		}
		s.start()
	}
	if r.State != codecs.JobState_running {
		return
	}
	for changed := true; changed; {
		changed = false
		for i := range r.Steps {
			changed = s.consider(i) || changed
		}
	}
	s.finish()
}

func (s *step) start() {
	r := s.r
	r.State = codecs.JobState_running
	r.StartedAt = r.Now
	if by := r.Definition.CompleteBy; by > 0 && r.CompleteBy == 0 {
		r.CompleteBy = r.Now + by
	}
	r.Version++
	s.event(codecs.TypeJobStarted, -1)
}

// consider starts or skips step i when its predecessors say so, and reports whether its state changed.
func (s *step) consider(i int) bool {
	r := s.r
	st, spec := r.Steps[i], r.Definition.Steps[i]
	if st.State != codecs.StepState_pending {
		return false
	}
	for _, a := range spec.After {
		switch p := r.Steps[indexOf(r, a)]; p.State {
		case codecs.StepState_completed, codecs.StepState_completed_with_failures:
		case codecs.StepState_failed, codecs.StepState_cancelled, codecs.StepState_expired, codecs.StepState_skipped:
			st.State = codecs.StepState_skipped
			st.Reason = fmt.Sprintf("step %s is %s", a, p.State)
			return true
		default:
			return false
		}
	}
	if r.Paused || s.broken() {
		return false
	}
	s.startStep(i)
	return true
}

// broken says that a step has ended badly: no new step starts, the running ones are let finish.
func (s *step) broken() bool {
	for _, st := range s.r.Steps {
		if bad(st.State) {
			return true
		}
	}
	return false
}

func bad(st codecs.StepState_Code) bool {
	return st == codecs.StepState_failed || st == codecs.StepState_cancelled || st == codecs.StepState_expired
}

// startStep hands out the step's task, or the task of its split.
func (s *step) startStep(i int) {
	r := s.r
	st, spec := r.Steps[i], r.Definition.Steps[i]
	st.StartedAt, st.EndedAt, st.Reason = r.Now, 0, ""
	t := &codecs.Task{
		Job: r.Job, JobKey: r.Key, Step: spec.Name, Round: st.Round, Attempt: 1, Kind: KindTask, EnqueuedAt: r.Now,
		Customer: r.Customer, JobType: r.Definition.Name,
		Id: fmt.Sprintf("%s.%s", r.Job, spec.Name),
	}
	queue := ""
	if spec.Task != nil {
		st.State = codecs.StepState_running
		queue, t.Retry, t.AttemptTimeout = spec.Task.Queue, spec.Task.Retry, spec.Task.AttemptTimeout
	} else {
		st.State = codecs.StepState_splitting
		st.Batch = BatchID(r.Job, spec.Name)
		st.Run = r.Run
		if st.Round > 1 { // another list is another batch
			st.Run = fmt.Sprintf("%s-%d", r.Run, st.Round)
		}
		t.Kind, t.Batch, t.Run = KindSplit, st.Batch, st.Run
		queue, t.Retry, t.AttemptTimeout = spec.FanOut.Split, spec.FanOut.Retry, spec.FanOut.AttemptTimeout
	}
	t.Payload = &codecs.Payload{Data: stepInput(r, i), ContentType: codecs.ContentJSON}
	s.event(codecs.TypeStepStarted, i)
	s.emit(codecs.Message{Topic: codecs.WorkTopic(queue), Key: r.Key, Type: codecs.TypeTask, Data: t, Due: true})
}

// Kinds of a task.
const (
	KindTask     = "task"     // the single task of a step
	KindSplit    = "split"    // lists the sub-jobs of a fan-out step
	KindSubjob   = "sub-job"  // one of them
	KindDelivery = "delivery" // of a notification
)

// BatchID is the id of the batch of a job's fan-out step.
func BatchID(job, step string) string { return job + "." + step }

// endStep records the end of step i, announces it, and looks what follows.
func (s *step) endStep(i int, state codecs.StepState_Code, reason string) {
	st := s.r.Steps[i]
	st.State, st.Reason, st.EndedAt = state, reason, s.r.Now
	s.r.Version++
	s.event(codecs.TypeStepCompleted, i)
}
