package job

import "github.com/quiesce/quiesce/codecs"

// ended says whether a job's state absorbs everything but redrive.
func ended(st codecs.JobState_Code) bool { return st >= codecs.JobState_completed }

// finish ends the job once no step runs and none can start any more. A paused one ends when it is resumed, unless its
// deadline passes or it is cancelled.
func (s *step) finish() {
	if s.r.Paused {
		return
	}
	state := codecs.JobState_completed
	reason := ""
	broken := s.broken()
	for i, st := range s.r.Steps {
		switch st.State {
		case codecs.StepState_pending:
			if !broken {
				return
			}
		case codecs.StepState_splitting, codecs.StepState_running:
			return
		}
		if to := jobStateOf(st.State); worse(to, state) {
			state = to
			reason = "step " + s.r.Definition.Steps[i].Name
			if st.Reason != "" {
				reason += ": " + st.Reason
			}
		}
	}
	for _, st := range s.r.Steps {
		if st.State == codecs.StepState_pending {
			st.State = codecs.StepState_skipped
		}
	}
	s.end(state, reason)
}

func jobStateOf(st codecs.StepState_Code) codecs.JobState_Code {
	switch st {
	case codecs.StepState_completed_with_failures:
		return codecs.JobState_completed_with_failures
	case codecs.StepState_failed:
		return codecs.JobState_failed
	case codecs.StepState_cancelled:
		return codecs.JobState_cancelled
	case codecs.StepState_expired:
		return codecs.JobState_expired
	}
	return codecs.JobState_completed
}

// severity of the ends of a job, from good to bad.
var severity = map[codecs.JobState_Code]int{
	codecs.JobState_completed: 0, codecs.JobState_completed_with_failures: 1, codecs.JobState_cancelled: 2,
	codecs.JobState_expired: 3, codecs.JobState_failed: 4,
}

func worse(a, b codecs.JobState_Code) bool { return severity[a] > severity[b] }

// end collects what the job left behind and announces its end: outputs leave in this order, so the orders to collect
// are durable and sent before the end is seen. A job that may be redriven keeps its manifest until its retention ends.
func (s *step) end(state codecs.JobState_Code, reason string) {
	r := s.r
	if state == codecs.JobState_completed {
		s.collectManifests()
	}
	r.State, r.Reason, r.EndedAt, r.Paused = state, reason, r.Now, false
	r.AwaitsBatches, r.AwaitsJobs = nil, nil
	r.Version++
	s.event(endName(state), -1)
	for _, key := range r.Watchers {
		s.tell(key)
	}
	r.Watchers = nil
	if s.m.perCust > 0 {
		r.AwaitsSlot = false
		s.toCustomer(release)
	}
}

func (s *step) collectManifests() {
	for _, st := range s.r.Steps {
		if st.Proposal != "" && !st.Drained {
			s.dropChunks(st.Batch, st.Proposal, int(st.Chunks))
			st.Drained = true
		}
	}
}

// endName is the event that announces the end of a job. An expired job has failed; its state says how.
func endName(state codecs.JobState_Code) string {
	switch state {
	case codecs.JobState_completed, codecs.JobState_completed_with_failures:
		return codecs.TypeJobCompleted
	case codecs.JobState_cancelled:
		return codecs.TypeJobCancelled
	}
	return codecs.TypeJobFailed
}

// deadlines does what is due at the append time of a nudge.
func (s *step) deadlines() {
	r := s.r
	switch {
	case ended(r.State):
		if r.State != codecs.JobState_collected && r.Now >= r.EndedAt+s.m.retentionOf(r) {
			s.collect()
		}
		return
	case r.CompleteBy > 0 && r.Now >= r.CompleteBy:
		s.stopSteps(codecs.StepState_expired, "the job's deadline passed")
		s.end(codecs.JobState_expired, "the job's deadline passed")
		return
	}
	for i, st := range r.Steps {
		if by := splitBy(r, i); st.State == codecs.StepState_splitting && by > 0 && r.Now >= by {
			s.endStep(i, codecs.StepState_expired, "the step's deadline passed before its sub-jobs were listed")
		}
	}
	s.advance()
}

// collect removes what is left of the job and of its batches.
func (s *step) collect() {
	s.collectManifests()
	for _, st := range s.r.Steps {
		if st.Proposal != "" {
			s.toBatch(st.Batch, "gc", &codecs.CommandArgs{Run: st.Run})
		}
	}
	s.r.State = codecs.JobState_collected
	s.r.Version++
}

// stopSteps ends every step that has not ended: running batches are cancelled in O(1).
func (s *step) stopSteps(state codecs.StepState_Code, reason string) {
	for i, st := range s.r.Steps {
		switch st.State {
		case codecs.StepState_running:
			if st.Proposal != "" {
				s.toBatch(st.Batch, "cancel", &codecs.CommandArgs{Run: st.Run, Reason: reason})
			}
			s.endStep(i, state, reason)
		case codecs.StepState_splitting:
			s.endStep(i, state, reason)
		case codecs.StepState_pending:
			st.State, st.Reason = codecs.StepState_skipped, reason
		}
	}
}
