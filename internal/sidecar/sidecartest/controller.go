package sidecartest

import (
	"encoding/json"
	"fmt"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// apply is as much of a controller as the interface needs: one leg, one feeder, absolute outcomes, idempotent commands.
func (d *Deployment) apply(id string, pos api.Position, ev *codecs.Event) {
	d.now++
	r, was := d.rows[id], ""
	if r != nil {
		was = r.State
	}
	if start, ok := ev.Data.(*codecs.BatchStart); ok {
		if r == nil || r.Run != start.Run {
			r, was = d.started(id, start), ""
		}
	}
	if r == nil {
		r = &row{Batch: api.Batch{Batch: id, State: "orphan"}, outcomes: map[uint32]api.Task{}, answers: map[string]api.Command{}}
		d.rows[id] = r
	}
	switch m := ev.Data.(type) {
	case *codecs.BatchSeal:
		if !r.Terminal && r.State == "open" {
			r.State, r.Counts.Total, r.Empty, r.SealedAt = "sealed", m.Total, m.Total == 0, api.Int64(d.now)
			r.Feeders = []api.Feeder{{Sealed: true, Total: m.Total}}
		}
	case *codecs.BatchReport:
		d.report(r, m)
	case *codecs.BatchCommand:
		d.command(r, m)
	}
	r.count()
	if r.State == "sealed" && r.Counts.Ended() == r.Counts.Total && !r.Paused {
		r.end("completed", d.now)
		if r.Counts.Failed > 0 {
			r.State = "completed_with_failures"
		}
	}
	r.Version++
	r.Applied = pos
	if r.State != was {
		d.emit(r)
		if r.Terminal && r.Owner != nil && d.workflow != nil {
			d.workflow.ended(r.ownerKey, &r.Batch)
		}
	}
}

func (d *Deployment) started(id string, start *codecs.BatchStart) *row {
	r := &row{outcomes: map[uint32]api.Task{}, answers: map[string]api.Command{}}
	r.Batch = api.Batch{Batch: id, Run: start.Run, State: "open", Round: 1, Mode: "ledger", Labels: start.Labels,
		StartedAt: api.Int64(d.now), Feeders: []api.Feeder{{}}}
	if start.Mode != "" {
		r.Mode = start.Mode
	}
	if o := start.Owner; o.GetJob() != "" {
		r.Owner, r.ownerKey = &api.Owner{Job: o.Job, Step: o.Step, Self: api.JobPath(o.Key)}, o.Key
	}
	if start.Topology != nil {
		r.Topology = &api.Topology{Name: start.Topology.Name, Version: start.Topology.Version}
	}
	for _, u := range start.Units {
		st := api.Stage{Stage: u.Stage, Topic: u.Topic, Units: u.Partitions}
		for p := range u.Partitions {
			st.Silent = append(st.Silent, p)
		}
		r.Stages = append(r.Stages, st)
	}
	d.rows[id] = r
	return r
}

func (d *Deployment) report(r *row, m *codecs.BatchReport) {
	if r.Terminal {
		r.Audit.Late++
		return
	}
	for _, it := range m.Items {
		_ = codecs.ForEachRange(it, func(first, last uint32) {
			for i := first; ; i++ {
				if _, twice := r.outcomes[i]; !twice {
					r.outcomes[i] = api.Task{Index: i, Outcome: it.Outcome.String(), Reason: it.Reason, Attempt: it.Attempt,
						Round: 1, Reporter: m.Reporter, At: api.Int64(d.now)}
				}
				if i == last {
					return
				}
			}
		})
	}
	r.LastProgress = api.Int64(d.now)
}

func (d *Deployment) command(r *row, m *codecs.BatchCommand) {
	if _, twice := r.answers[m.Id]; twice {
		return
	}
	a := api.Command{Command: m.Id, Verb: m.Verb, Applied: true, At: api.Int64(d.now)}
	switch {
	case m.Expect != 0 && m.Expect != uint64(r.Version):
		a.Applied, a.Reason = false, "stale version"
	case r.State == "orphan":
		a.Applied, a.Reason = false, "no such batch"
	case m.Verb == "cancel" && !r.Terminal:
		r.end("cancelled", d.now)
	case m.Verb == "pause":
		r.Paused = true
	case m.Verb == "resume":
		r.Paused = false
	case m.Verb == "repair":
		r.Quarantined = false
	case m.Verb == "redrive":
		r.Terminal, r.State, r.Round = false, "sealed", r.Round+1
		for i, t := range r.outcomes {
			if t.Outcome != "ok" {
				delete(r.outcomes, i)
			}
		}
	case m.Verb == "extend" && m.Args.GetDeadlines() != nil:
		r.Deadlines = &api.Deadlines{CompleteBy: api.Int64(m.Args.Deadlines.CompleteBy)}
	case m.Verb == "policy" && m.Args.GetPolicy() != nil:
		r.Policy = &api.Policy{Kind: m.Args.Policy.Kind, Tolerate: m.Args.Policy.Tolerate}
	}
	r.answers[m.Id] = a
}

func (r *row) end(state string, now int64) {
	r.State, r.Terminal, r.EndedAt = state, true, api.Int64(now)
}

func (r *row) count() {
	c := api.Counts{Total: r.Counts.Total}
	for _, t := range r.outcomes {
		switch t.Outcome {
		case "ok":
			c.OK++
		case "failed":
			c.Failed++
		case "skipped":
			c.Skipped++
		}
	}
	if r.State == "cancelled" {
		c.Cancelled = c.Total - c.Ended()
	}
	if r.State != "open" && c.Total >= c.Ended() {
		c.Pending = c.Total - c.Ended()
	}
	r.Counts = c
}

// emit appends the lifecycle event of a new state.
func (d *Deployment) emit(r *row) {
	name := map[string]string{"open": "batch.started", "sealed": "batch.sealed", "completed": "batch.completed",
		"completed_with_failures": "batch.completed-with-failures", "cancelled": "batch.cancelled"}[r.State]
	data, _ := json.Marshal(map[string]any{"run": r.Run, "state": r.State})
	d.announce(name, r.Batch.Batch, data)
}

func (d *Deployment) announce(name, subject string, data json.RawMessage) {
	p := partitionOf(subject)
	d.events[p] = append(d.events[p], api.Event{ID: fmt.Sprintf("%d/%d", p, len(d.events[p])), Type: name, Subject: subject,
		Time: api.Int64(d.now), Partition: p, Offset: api.Int64(len(d.events[p])), Data: data})
	close(d.appended)
	d.appended = make(chan struct{})
}
