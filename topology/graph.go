package topology

import (
	"fmt"
	"slices"
)

// Writers returns the stages that write records of a batch to a topic, by name.
func (t *Topology) Writers(topic string) []string {
	var w []string
	for _, s := range sortedKeys(t.Stages) {
		if slices.Contains(t.Outputs(s), topic) {
			w = append(w, s)
		}
	}
	return w
}

// Readers returns the stages that read a topic, by name.
func (t *Topology) Readers(topic string) []string {
	var r []string
	for _, s := range sortedKeys(t.Stages) {
		if slices.Contains(t.Stages[s].In, topic) {
			r = append(r, s)
		}
	}
	return r
}

// Outputs returns the topics to which a stage sends records of the batch: without sinks. A stage that has none is an
// end of the topology.
func (t *Topology) Outputs(stage string) []string {
	s := t.Stages[stage]
	if s.Sink {
		return nil
	}
	var out []string
	for _, topic := range s.Out {
		if !t.Topics[topic].Sink {
			out = append(out, topic)
		}
	}
	return out
}

// outside says whether the records of a topic are outside the batch.
func (t *Topology) outside(topic string) bool { return t.Topics[topic].Sink || t.sunk(topic) }

// sunk says whether a sink stage writes the topic.
func (t *Topology) sunk(topic string) bool {
	for _, s := range t.Stages {
		if s.Sink && slices.Contains(s.Out, topic) {
			return true
		}
	}
	return false
}

// Order returns the stages such that each stands behind all that write its inputs, ties by name. The error names the
// stages of a cycle.
func (t *Topology) Order() ([]string, error) {
	order, rest := t.order()
	if len(rest) > 0 {
		return nil, fmt.Errorf("topology %s: stages in a cycle: %v", t.Name, rest)
	}
	return order, nil
}

// order returns the stages in topological order and those that are in a cycle or behind one, by name.
func (t *Topology) order() (order, rest []string) { return layers(sortedKeys(t.Stages), t.feeds) }

// layers orders nodes such that each stands behind those that come before it, ties as given; rest has those for which
// there is no order (Kahn, 1962).
func layers(nodes []string, before func(a, b string) bool) (order, rest []string) {
	for {
		var next []string
		for _, n := range nodes {
			if !slices.ContainsFunc(nodes, func(other string) bool { return before(other, n) }) {
				next = append(next, n)
			}
		}
		if len(next) == 0 {
			return order, nodes
		}
		order = append(order, next...)
		nodes = slices.DeleteFunc(nodes, func(n string) bool { return slices.Contains(next, n) })
	}
}

// feeds says whether stage w writes an input of stage s.
func (t *Topology) feeds(w, s string) bool {
	return slices.ContainsFunc(t.Outputs(w), func(topic string) bool { return slices.Contains(t.Stages[s].In, topic) })
}

// downstream returns the stages that records of the given topics can reach, by name.
func (t *Topology) downstream(topics ...string) []string {
	reached := map[string]bool{}
	for todo := topics; len(todo) > 0; {
		var next []string
		for _, topic := range todo {
			for _, s := range t.Readers(topic) {
				if !reached[s] {
					reached[s] = true
					next = append(next, t.Outputs(s)...)
				}
			}
		}
		todo = next
	}
	return sortedKeys(reached)
}

// cycles returns the stages that can reach themselves, by name.
func (t *Topology) cycles() []string {
	var c []string
	for _, s := range sortedKeys(t.Stages) {
		if slices.Contains(t.downstream(t.Outputs(s)...), s) {
			c = append(c, s)
		}
	}
	return c
}

// Edges is one stage in the terms of a goka group graph: DefineGroup(Group, Input(...)..., Output(...)..., Persist()).
type Edges struct {
	Group   string
	Inputs  []string
	Outputs []string // sinks included
	Table   bool
}

// Graph returns the edges of a stage.
func (t *Topology) Graph(stage string) (Edges, error) {
	s, ok := t.Stages[stage]
	if !ok {
		return Edges{}, fmt.Errorf("topology %s: no stage %q", t.Name, stage)
	}
	return Edges{Group: s.Group, Inputs: slices.Clone(s.In), Outputs: slices.Clone(s.Out), Table: s.Table}, nil
}
