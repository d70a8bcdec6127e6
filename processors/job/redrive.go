package job

import (
	"fmt"

	"github.com/quiesce/quiesce/codecs"
)

// redrive runs what did not complete again: single tasks and splits that failed, and in fan-out steps only the sub-jobs
// without ok or skipped, from the recorded list. Steps after a redriven one run again, since what they are given changes.
func (s *step) redrive(a *codecs.JobCommandArgs) string {
	r := s.r
	if !ended(r.State) || r.State == codecs.JobState_completed || r.State == codecs.JobState_collected {
		return "only a job that ended without completing can be redriven: this one is " + r.State.String()
	}
	again := make([]bool, len(r.Steps))
	some := false
	for i, st := range r.Steps {
		if a.Step != "" && a.Step != r.Definition.Steps[i].Name {
			continue
		}
		switch {
		case bad(st.State) || st.State == codecs.StepState_completed_with_failures:
			again[i], some = true, true
		case st.State == codecs.StepState_skipped:
			some = true
		}
	}
	if !some && (a.Step != "" || !s.stopped()) {
		return fmt.Sprintf("/step: nothing to redrive in %q", a.Step)
	}
	follow := make([]bool, len(r.Steps))
	for i := range again {
		if again[i] {
			for _, k := range descendants(r.Definition, i) {
				follow[k] = true
			}
		}
	}
	r.State, r.Reason, r.EndedAt, r.CompleteBy = codecs.JobState_running, "", 0, 0
	r.Round++
	for i, st := range r.Steps {
		switch {
		case follow[i], st.State == codecs.StepState_skipped:
			s.reset(i)
		case again[i]:
			s.again(i)
		}
	}
	if s.m.perCust > 0 {
		r.State, r.AwaitsSlot = codecs.JobState_waiting, true
		s.toCustomer(ask)
	}
	return ""
}

// stopped says that the job itself ended early: it was cancelled, or expired, while it was paused and all its steps were done.
func (s *step) stopped() bool {
	return s.r.State == codecs.JobState_cancelled || s.r.State == codecs.JobState_expired
}

// reset makes step i run from the start when its predecessors are done.
func (s *step) reset(i int) {
	st := s.r.Steps[i]
	if st.State == codecs.StepState_pending {
		return
	}
	keep := &codecs.StepRow{State: codecs.StepState_pending, Round: st.Round + 1}
	if st.Proposal != "" { // the old list belongs to other results: list again, in a batch of its own run
		s.dropChunks(st.Batch, st.Proposal, int(st.Chunks))
		s.toBatch(st.Batch, "gc", &codecs.CommandArgs{Run: st.Run})
	}
	s.r.Steps[i] = keep
}

// again redrives step i itself.
func (s *step) again(i int) {
	r := s.r
	st := r.Steps[i]
	st.Round++
	if st.Proposal == "" { // a single task, or a split that never won
		st.State, st.Result, st.Counts, st.Attempts = codecs.StepState_pending, nil, nil, 0
		return
	}
	if st.BatchState == codecs.State_completed { // it completed while the job was being cancelled
		s.endStep(i, codecs.StepState_completed, "")
		return
	}
	st.State, st.BatchRound, st.StartedAt, st.EndedAt, st.Reason = codecs.StepState_running, st.BatchRound+1, r.Now, 0, ""
	s.event(codecs.TypeStepStarted, i)
	args := &codecs.CommandArgs{Run: st.Run, Watcher: r.Key}
	if by := r.Definition.Steps[i].FanOut.CompleteBy; by > 0 {
		args.Deadlines = &codecs.Deadlines{CompleteBy: r.Now + by}
	}
	s.toBatch(st.Batch, "redrive", args)
}
