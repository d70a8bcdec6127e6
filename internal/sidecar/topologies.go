package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/topology"
)

// topology lists the declared topologies.
func (s *Server) topology(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	q.only()
	if err := q.err(); err != nil {
		s.fail(w, r, err)
		return
	}
	list := api.TopologyList{Topologies: make([]api.TopologyDoc, 0, len(s.cfg.Topologies))}
	for _, t := range s.cfg.Topologies {
		list.Topologies = append(list.Topologies, describe(t))
	}
	writeJSON(w, 200, list)
}

func describe(t *topology.Topology) api.TopologyDoc {
	d := api.TopologyDoc{Name: t.Name, Version: t.Version, Source: t.Source, Modes: t.Fits(),
		Topics: map[string]api.TopicDoc{}, Stages: map[string]api.StageDoc{}, Text: t.Text(), Mermaid: t.Mermaid()}
	for name, topic := range t.Topics {
		d.Topics[name] = api.TopicDoc{Partitions: topic.Partitions, Sink: topic.Sink}
	}
	for name, st := range t.Stages {
		d.Stages[name] = api.StageDoc{In: st.In, Out: st.Out, Group: st.Group, Client: st.ClientOf()}
	}
	return d
}

// find returns the declared topology that a reference means; version 0 = the highest.
func (s *Server) find(name string, version uint32) *topology.Topology {
	var found *topology.Topology
	for _, t := range s.cfg.Topologies {
		if t.Name == name && (version == t.Version || version == 0 && (found == nil || t.Version > found.Version)) {
			found = t
		}
	}
	return found
}

// fillTopology completes a START that only names its topology: digest, and the units or legs, from the real partition
// counts. A START that brings them is left alone.
func (s *Server) fillTopology(ctx context.Context, start *codecs.BatchStart) error {
	named := start.Topology.GetName() != ""
	if len(start.Units) > 0 || len(start.Legs) > 0 || len(start.Topology.GetDigest()) > 0 {
		return nil
	}
	if !named {
		if start.Mode == topology.ModeMarkers || start.Mode == topology.ModeObserve || start.Mode == topology.ModeCount {
			return invalid(api.Field{Pointer: "/topology", Reason: "missing: mode " + start.Mode + " needs one, or units"})
		}
		return nil
	}
	t := s.find(start.Topology.Name, start.Topology.Version)
	if t == nil {
		return invalid(api.Field{Pointer: "/topology/name", Reason: fmt.Sprintf("this sidecar knows no topology %s version %d",
			start.Topology.Name, start.Topology.Version)})
	}
	var resolve topology.Resolver
	if s.cfg.Groups != nil {
		resolve = func(topic string) (int32, error) { return s.cfg.Groups.Partitions(ctx, topic) }
	}
	known, err := t.Start(start.Mode, resolve)
	if err != nil {
		var faults topology.Faults
		if errors.As(err, &faults) {
			return invalid(api.Field{Pointer: "/topology", Reason: err.Error()})
		}
		return brokerFault("partitions of topology "+t.Name, err)
	}
	start.Mode, start.Topology, start.Units, start.Legs = known.Mode, known.Topology, known.Units, known.Legs
	return nil
}
