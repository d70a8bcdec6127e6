package sidecar

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/topology"
)

// explain says why a batch has not ended: the row, and the groups of its topology as Kafka has them now.
func (s *Server) explain(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	q.only("at_least")
	if err := q.err(); err != nil {
		s.fail(w, r, err)
		return
	}
	b, err := s.cfg.Batches.Get(chi.URLParam(r, "id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), explainTimeout)
	defer cancel()
	x, err := s.explanation(ctx, b)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.markStale(w, s.cfg.Batches)
	writeJSON(w, 200, x)
}

const explainTimeout = 5 * time.Second

func (s *Server) explanation(ctx context.Context, b *api.Batch) (*api.Explain, error) {
	x := &api.Explain{Batch: b.Batch, Run: b.Run, State: b.State, Stages: []api.ExplainStage{}, At: api.Int64(s.cfg.Now().UnixMilli())}
	if b.Counts.Total > b.Counts.Ended() {
		x.Remaining = b.Counts.Total - b.Counts.Ended()
	}
	var missing MissingPage
	if !b.Terminal {
		s.addStages(ctx, x, b)
		var err error
		if missing, err = s.cfg.Batches.Missing(b.Batch, Place{}, explainRanges); err != nil {
			return nil, err
		}
	}
	x.Lines = explainLines(b, x, missing, s.cfg.Now())
	return x, nil
}

// explainRanges is the number of missing ranges that an explanation names.
const explainRanges = 8

// addStages looks at the groups of the batch's topology, in the order of the flow.
func (s *Server) addStages(ctx context.Context, x *api.Explain, b *api.Batch) {
	if b.Topology == nil {
		return
	}
	t := s.find(b.Topology.Name, b.Topology.Version)
	if t == nil || s.cfg.Groups == nil {
		x.Faults = append(x.Faults, fmt.Sprintf("topology %s version %d is not known here: its groups were not looked at",
			b.Topology.Name, b.Topology.Version))
		x.Stages = append(x.Stages, rowStages(b)...)
		return
	}
	order, err := t.Order()
	if err != nil { // a cycle: any order will do
		for name := range t.Stages {
			order = append(order, name)
		}
		slices.Sort(order)
	}
	for _, name := range order {
		st := t.Stages[name]
		g, err := s.lag.look(ctx, st.Group, st.In)
		if err != nil {
			x.Faults = append(x.Faults, err.Error())
			continue
		}
		x.Stages = append(x.Stages, s.stageOf(name, st, g, b)...)
	}
}

// stageOf splits a group into its input topics.
func (s *Server) stageOf(name string, st topology.Stage, g *Group, b *api.Batch) []api.ExplainStage {
	var out []api.ExplainStage
	for _, topic := range st.In {
		e := api.ExplainStage{Stage: name, Topic: topic, Group: st.Group, GroupState: g.State, Members: g.Members,
			Partitions: []api.ExplainPartition{}}
		row := stageRow(b, name, topic)
		for _, u := range g.Inputs {
			if u.Topic != topic {
				continue
			}
			p := api.ExplainPartition{Partition: uint32(u.Partition), Committed: api.Int64(u.Committed), End: api.Int64(u.End),
				Lag: api.Int64(u.Lag()), Member: u.Client, Host: u.Host}
			p.Reported = row != nil && !slices.Contains(row.Silent, uint32(u.Partition))
			if idle := s.lag.idle(st.Group, topic, u.Partition); u.Lag() > 0 {
				ms := api.Int64(idle.Milliseconds())
				p.Idle = &ms
			}
			e.Lag += p.Lag
			e.Partitions = append(e.Partitions, p)
		}
		if row != nil {
			e.Remaining = row.Units - row.Reported
		}
		out = append(out, e)
	}
	return out
}

func stageRow(b *api.Batch, stage, topic string) *api.Stage {
	for i := range b.Stages {
		if b.Stages[i].Stage == stage && b.Stages[i].Topic == topic {
			return &b.Stages[i]
		}
	}
	return nil
}

// rowStages shows what the row alone knows.
func rowStages(b *api.Batch) []api.ExplainStage {
	var out []api.ExplainStage
	for _, st := range b.Stages {
		e := api.ExplainStage{Stage: st.Stage, Topic: st.Topic, Remaining: st.Units - st.Reported, Partitions: []api.ExplainPartition{}}
		for _, p := range st.Silent {
			e.Partitions = append(e.Partitions, api.ExplainPartition{Partition: p, Committed: -1, End: -1, Lag: -1})
		}
		out = append(out, e)
	}
	return out
}
