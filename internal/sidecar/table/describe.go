package table

import (
	"cmp"
	"fmt"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// describe makes the document of a batch.
func describe(r record) api.Batch {
	p, _ := r.row.Snapshot()
	c := p.Counts
	if c == nil {
		c = &codecs.Counts{}
	}
	b := api.Batch{Batch: r.Key, Run: p.Run, State: p.State.String(), Terminal: p.State.Terminal(), Round: p.Round, Mode: p.Start.GetMode(), Paused: p.Paused,
		Quarantined: r.Quarantined, Empty: p.Sealed && p.Total == 0, Reason: p.Reason, Version: api.Int64(p.Version),
		Applied: api.Position{Partition: r.Partition, Offset: r.Applied},
		Counts:  counts(c), Policy: policy(p.Policy),
		Labels: p.Start.GetLabels(), OnDeadline: p.Start.GetOnDeadline(), Queue: p.Start.GetQueue(), Window: p.Window, Released: p.Released,
		StartedAt: api.Int64(p.StartedAt), SealedAt: api.Int64(p.SealedAt), EndedAt: api.Int64(p.EndedAt), LastProgress: api.Int64(p.LastProgress),
		Rate: p.Rate, ETA: api.Int64(p.ETA)}
	if a := p.Audit; a != nil {
		b.Audit = api.Audit{Duplicates: api.Int64(a.Duplicates), Late: api.Int64(a.Late), Unexpected: api.Int64(a.Unexpected), Stale: api.Int64(a.Stale)}
	}
	if t := p.Start.GetTopology(); t != nil {
		b.Topology = &api.Topology{Name: t.Name, Version: t.Version}
	}
	if o := p.Start.GetOwner(); o.GetJob() != "" {
		b.Owner = &api.Owner{Job: o.Job, Step: o.Step, Self: api.JobPath(cmp.Or(o.Key, o.Job))}
	}
	if d := p.Deadlines; d != nil {
		b.Deadlines = &api.Deadlines{SealBy: api.Int64(d.SealBy), CompleteBy: api.Int64(d.CompleteBy), NoProgressFor: api.Int64(d.NoProgressFor)}
	}
	for i, f := range p.Feeders {
		b.Feeders = append(b.Feeders, api.Feeder{Feeder: uint32(i), Sealed: f.Sealed, Total: f.Total})
	}
	b.Stages = stages(p.Start, p.Ends)
	return b
}

func counts(c *codecs.Counts) api.Counts {
	return api.Counts{Total: c.Total, Pending: c.Pending, Running: c.Running, OK: c.Ok, Failed: c.Failed, Skipped: c.Skipped,
		Cancelled: c.Cancelled, TimedOut: c.TimedOut, Lost: c.Lost, Unknown: c.Unknown}
}

func policy(p *codecs.Policy) *api.Policy {
	if p == nil {
		return nil
	}
	return &api.Policy{Kind: p.Kind, Tolerate: p.Tolerate, MinSample: p.MinSample}
}

// maxSilent bounds the partitions that a stage names.
const maxSilent = 64

// stages says of each input of a stage which of its partitions have reported END.
func stages(start *codecs.BatchStart, ends []*codecs.UnitEnd) (out []api.Stage) {
	by := map[string]*codecs.UnitEnd{}
	for _, e := range ends {
		by[e.Unit] = e
	}
	for _, u := range start.GetUnits() {
		s := api.Stage{Stage: u.Stage, Topic: u.Topic, Units: u.Partitions}
		for n := range u.Partitions {
			e := by[fmt.Sprintf("%s/%s/%d", u.Stage, u.Topic, n)]
			switch {
			case e != nil:
				s.Reported++
				s.Consumed += api.Int64(e.Consumed)
				s.Failed += api.Int64(e.Failed)
				s.LastAt = max(s.LastAt, api.Int64(e.At))
			case len(s.Silent) < maxSilent:
				s.Silent = append(s.Silent, n)
			}
		}
		out = append(out, s)
	}
	return out
}
