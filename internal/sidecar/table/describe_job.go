package table

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/processors"
)

// DescribeJob makes the document of a job. r is where its row stands.
func DescribeJob(r processors.ViewRow, p *codecs.JobRow) api.Job {
	j := api.Job{Job: p.Job, Customer: p.Customer, Type: p.Definition.GetName(), TypeVersion: p.Definition.GetVersion(), State: p.State.String(),
		Terminal: p.State >= codecs.JobState_completed, Round: p.Round, Paused: p.Paused, Quarantined: r.Quarantined, Reason: p.Reason,
		Version: api.Int64(p.Version), Applied: api.Position{Partition: r.Partition, Offset: r.Applied}, Request: p.RequestId, Self: api.JobPath(r.Key),
		Input: payload(p.Input), Labels: p.Labels, Priority: p.Priority, Steps: []api.JobStep{},
		RequestedAt: api.Int64(p.RequestedAt), StartedAt: api.Int64(p.StartedAt), EndedAt: api.Int64(p.EndedAt), CompleteBy: api.Int64(p.CompleteBy)}
	if a := p.Audit; a != nil {
		j.Audit = api.Audit{Duplicates: api.Int64(a.Duplicates), Late: api.Int64(a.Late), Unexpected: api.Int64(a.Unexpected), Stale: api.Int64(a.Stale)}
	}
	if p.AwaitsSlot || len(p.AwaitsBatches)+len(p.AwaitsJobs) > 0 {
		j.Awaits = &api.Awaits{Batches: p.AwaitsBatches, Slot: p.AwaitsSlot}
		for _, k := range p.AwaitsJobs {
			j.Awaits.Jobs = append(j.Awaits.Jobs, strings.ReplaceAll(k, "\x00", "/"))
		}
	}
	for i, st := range p.Steps {
		j.Steps = append(j.Steps, step(p.Definition.Steps[i], st))
	}
	return j
}

func step(spec *codecs.StepSpec, p *codecs.StepRow) api.JobStep {
	st := api.JobStep{Step: spec.Name, After: spec.After, State: p.State.String(), Round: p.Round, Batch: p.Batch, Run: p.Run, BatchRound: p.BatchRound,
		Result: payload(p.Result), Reason: p.Reason, Attempts: p.Attempts, StartedAt: api.Int64(p.StartedAt), EndedAt: api.Int64(p.EndedAt)}
	if c := p.Counts; c != nil {
		n := counts(c)
		st.Counts = &n
	}
	if spec.Task != nil {
		st.Queue = spec.Task.Queue
		return st
	}
	f := spec.FanOut
	st.Queue, st.Split, st.Window, st.Policy = f.GetQueue(), f.GetSplit(), f.GetWindow(), policy(f.GetPolicy())
	if p.Proposal == "" { // its id is fixed, but there is no batch before a split has won
		st.Batch, st.Run = "", ""
	}
	return st
}

// payload shows data as JSON when it is JSON, as text when it is text, else as base64.
func payload(p *codecs.Payload) *api.Payload {
	if p == nil {
		return nil
	}
	out := &api.Payload{Reference: p.Reference, ContentType: p.ContentType}
	switch {
	case len(p.Data) == 0:
	case json.Valid(p.Data):
		out.JSON = p.Data
	case utf8.Valid(p.Data):
		out.Text = string(p.Data)
	default:
		out.Base64 = p.Data
	}
	return out
}

// AnswerOf returns a row's answer to a command.
func AnswerOf(p *codecs.JobRow, command string) (*api.Command, error) {
	for _, a := range p.Answers {
		if a.Id == command {
			return &api.Command{Command: a.Id, Verb: a.Verb, Applied: a.Applied, Reason: a.Reason, At: api.Int64(a.At)}, nil
		}
	}
	return nil, sidecar.ErrUnknown
}
