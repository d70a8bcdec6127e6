package job

import (
	"fmt"

	"github.com/quiesce/quiesce/codecs"
)

// splitProposed takes a list of sub-jobs that stands in the manifest. The first valid proposal in log order wins.
func (s *step) splitProposed(d *codecs.SplitProposed) {
	r := s.r
	i := indexOf(r, d.Step)
	if i < 0 || r.Definition.Steps[i].FanOut == nil {
		s.reject(fmt.Sprintf("step %q has no split", d.Step))
		return
	}
	st := r.Steps[i]
	if ended(r.State) || st.State != codecs.StepState_splitting || max(d.Round, 1) != st.Round {
		if st.Proposal == d.Proposal {
			s.duplicate()
			return
		}
		s.late()
		s.dropChunks(st.Batch, d.Proposal, len(d.Chunks))
		return
	}
	if reason := proposalFault(r.Definition.Steps[i].FanOut, d); reason != "" {
		s.dropChunks(st.Batch, d.Proposal, len(d.Chunks))
		s.endStep(i, codecs.StepState_failed, "split: "+reason)
		s.advance()
		return
	}
	s.openBatch(i, d)
}

// proposalFault says what is wrong with a proposal; "" = nothing.
func proposalFault(spec *codecs.FanOutSpec, d *codecs.SplitProposed) string {
	switch {
	case codecs.ValidID("proposal", d.Proposal) != nil:
		return fmt.Sprintf("proposal id %q", d.Proposal)
	case len(d.Chunks) > maxChunks:
		return fmt.Sprintf("%d chunks, at most %d", len(d.Chunks), maxChunks)
	case (d.Total == 0) != (len(d.Chunks) == 0):
		return fmt.Sprintf("%d tasks in %d chunks", d.Total, len(d.Chunks))
	case spec.MaxTotal > 0 && d.Total > spec.MaxTotal:
		return fmt.Sprintf("%d tasks, at most %d", d.Total, spec.MaxTotal)
	}
	for k, c := range d.Chunks {
		if k == 0 && c.First != 0 || k > 0 && c.First <= d.Chunks[k-1].First || c.First >= d.Total {
			return fmt.Sprintf("chunk %d starts at task %d of %d", k, c.First, d.Total)
		}
	}
	return ""
}

// openBatch starts and seals the step's batch from the winning proposal.
func (s *step) openBatch(i int, d *codecs.SplitProposed) {
	r := s.r
	st, spec := r.Steps[i], r.Definition.Steps[i]
	f := spec.FanOut
	st.State, st.Proposal, st.Chunks, st.BatchRound = codecs.StepState_running, d.Proposal, uint32(len(d.Chunks)), 1
	st.Counts = &codecs.Counts{Total: d.Total, Pending: d.Total}
	st.BatchState = codecs.State_unspecified
	start := &codecs.BatchStart{
		Run: st.Run, Mode: "ledger", Policy: f.Policy, OnDeadline: f.OnDeadline, Labels: r.Labels,
		Owner:     &codecs.Owner{Job: r.Job, Step: spec.Name, Key: r.Key, Type: r.Definition.Name},
		MaxTotal:  f.MaxTotal,
		Retention: untilCollected, OpenChildren: f.OpenChildren, Window: f.Window, Queue: f.Queue,
		Deadlines: &codecs.Deadlines{NoProgressFor: f.NoProgressFor},
		Task: &codecs.TaskTemplate{Job: r.Job, Step: spec.Name, JobKey: r.Key, JobType: r.Definition.Name,
			Customer: r.Customer, Priority: r.Priority, Retry: f.Retry, AttemptTimeout: f.AttemptTimeout},
	}
	if !f.OpenChildren { // nothing is added to what was listed
		start.MaxTotal = max(f.MaxTotal, d.Total)
	}
	if st.Round > 1 { // somebody may have redriven the batch of the old list past this job
		start.ReuseOpen = "supersede"
	}
	if f.CompleteBy > 0 {
		start.Deadlines.CompleteBy = st.StartedAt + f.CompleteBy
	}
	s.emit(codecs.Message{Topic: codecs.TopicControl, Key: st.Batch, Type: codecs.TypeBatchStart, Data: start, Due: true})
	if r.Paused { // before the seal, which would release the sub-jobs
		s.toBatch(st.Batch, "pause", &codecs.CommandArgs{Run: st.Run})
	}
	s.emit(codecs.Message{Topic: codecs.TopicControl, Key: st.Batch, Type: codecs.TypeBatchSeal, Due: true,
		Data: &codecs.BatchSeal{Run: st.Run, Total: d.Total, PayloadDigest: d.Digest, Chunks: d.Chunks}})
}

// dropChunks removes the manifest chunks of a proposal that did not win or is done with.
func (s *step) dropChunks(batch, proposal string, chunks int) {
	if codecs.ValidID("proposal", proposal) != nil {
		return
	}
	for k := range min(chunks, maxChunks) {
		s.emit(codecs.Message{Topic: codecs.TopicManifest, Key: codecs.ChunkKey(batch, proposal, uint32(k)), Type: codecs.TypeManifestChunk})
	}
}

// splitBy is the time at which the split of step i must be done; 0 = no deadline.
func splitBy(r *codecs.JobRow, i int) int64 {
	f := r.Definition.Steps[i].FanOut
	if f == nil || f.CompleteBy == 0 {
		return 0
	}
	return r.Steps[i].StartedAt + f.CompleteBy
}
