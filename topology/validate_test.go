package topology

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFaultsByName breaks a valid topology in one way each and expects exactly the faults that follow from it.
func TestFaultsByName(t *testing.T) {
	type broken struct {
		name, mode string
		change     func(*Topology)
		want       []string
	}
	topic := func(name string, v Topic) func(*Topology) { return func(x *Topology) { x.Topics[name] = v } }
	stage := func(name string, v Stage) func(*Topology) { return func(x *Topology) { x.Stages[name] = v } }
	for _, c := range []broken{
		{"no name", "", func(x *Topology) { x.Name = "" },
			[]string{`topology: topology id "": 1 to 128 of A-Z a-z 0-9 . _ @ = + -, starting with a letter or digit`}},
		{"no version", "", func(x *Topology) { x.Version = 0 }, []string{`version: missing: a whole number from 1`}},
		{"bad stage id", "", stage("a/b", Stage{In: []string{"paths"}, Group: "g"}),
			[]string{`stages.a/b: stage id "a/b": 1 to 128 of A-Z a-z 0-9 . _ @ = + -, starting with a letter or digit`}},
		{"feeder as stage", "", stage("feeder", Stage{In: []string{"paths"}, Group: "g"}),
			[]string{`stages.feeder: the name "feeder" stands for the feeders`}},
		{"bad group", "", edit("parse", func(s *Stage) { s.Group = "a b" }),
			[]string{`stages.parse.group: group id "a b": 1 to 128 of A-Z a-z 0-9 . _ @ = + -, starting with a letter or digit`}},
		{"table of a group that is no topic", "", edit("report", func(s *Stage) { s.Group, s.Table = "a@b", true }),
			[]string{`stages.report.group: names the topic of the stage's table: topic name "a@b-table": 1 to 249 of A-Z a-z 0-9 . _ -`}},
		{"reserved topic", "", topic("quiesce.control", Topic{Partitions: 1, Sink: true}),
			[]string{`topics.quiesce.control: topic names that begin with "quiesce." are the deployment's own`}},
		{"reserved group", "", edit("parse", func(s *Stage) { s.Group = "quiesce.controller" }),
			[]string{`stages.parse.group: group names that begin with "quiesce." are the deployment's own`}},
		{"colliding topics", "", func(x *Topology) {
			x.Topics["a.b"], x.Topics["a_b"] = Topic{Sink: true}, Topic{Sink: true}
		}, []string{`topics.a_b: brokers cannot tell it from topic "a.b" (. and _ are one)`}},
		{"no source", "", func(x *Topology) { x.Source = "" }, []string{
			`source: missing: the topic that feeders write`,
			`topics.paths: nobody writes it`,
			`stages.digest: nothing from the source "" reaches the stage`,
			`stages.parse: nothing from the source "" reaches the stage`,
			`stages.report: nothing from the source "" reaches the stage`}},
		{"source not declared", "", func(x *Topology) { x.Source = "pahts" }, []string{
			`source: topic "pahts" is not declared`,
			`topics.paths: nobody writes it`,
			`stages.digest: nothing from the source "pahts" reaches the stage`,
			`stages.parse: nothing from the source "pahts" reaches the stage`,
			`stages.report: nothing from the source "pahts" reaches the stage`}},
		{"no stages", "", func(x *Topology) { x.Stages = nil }, []string{
			`stages: there is no stage`,
			`topics.asts: nobody writes it`,
			`topics.digests: nobody writes it`,
			`topics.paths: nobody reads it (declare sink: true if its records are outside the batch)`}},
		{"stage without input", "", stage("idle", Stage{Group: "g"}), []string{`stages.idle.in: a stage reads at least one topic`}},
		{"unknown input", "", edit("parse", func(s *Stage) { s.In = append(s.In, "nope") }),
			[]string{`stages.parse.in[1]: topic "nope" is not declared`}},
		{"unknown output", "", edit("parse", func(s *Stage) { s.Out = append(s.Out, "nope") }),
			[]string{`stages.parse.out[1]: topic "nope" is not declared`}},
		{"input twice", "", edit("report", func(s *Stage) { s.In = append(s.In, "asts") }),
			[]string{`stages.report.in[2]: topic "asts" is there twice`}},
		{"reads what it writes", "", edit("parse", func(s *Stage) { s.Out = append(s.Out, "paths") }),
			[]string{`stages.parse.out[1]: the stage reads topic "paths" too`}},
		{"no group", "", edit("parse", func(s *Stage) { s.Group = "" }),
			[]string{`stages.parse.group: missing: the consumer group that reads for the stage`}},
		{"group twice", "", edit("parse", func(s *Stage) { s.Group = "go-index.digest" }),
			[]string{`stages.parse.group: group "go-index.digest" belongs to stage digest already`}},
		{"unknown client", "", edit("parse", func(s *Stage) { s.Client = "java" }),
			[]string{`stages.parse.client: unknown client "java"; known are library, goka, foreign`}},
		{"table without goka", "", edit("parse", func(s *Stage) { s.Table = true }),
			[]string{`stages.parse.table: only a stage with client: goka has a table`}},
		{"orphan topic", "", topic("lost", Topic{Partitions: 1}), []string{`topics.lost: nobody writes it`}},
		{"topic nobody reads", "", func(x *Topology) {
			x.Topics["results"] = Topic{Partitions: 1}
			edit("report", func(s *Stage) { s.Out = []string{"results"} })(x)
		}, []string{`topics.results: nobody reads it (declare sink: true if its records are outside the batch)`}},
		{"island", "", func(x *Topology) {
			x.Topics["i1"], x.Topics["i2"] = Topic{Partitions: 1}, Topic{Partitions: 1}
			x.Stages["one"] = Stage{In: []string{"i1"}, Out: []string{"i2"}, Group: "g1"}
			x.Stages["two"] = Stage{In: []string{"i2"}, Out: []string{"i1"}, Group: "g2"}
		}, []string{
			`stages.one: nothing from the source "paths" reaches the stage`,
			`stages.two: nothing from the source "paths" reaches the stage`}},
		{"an input that no END reaches", ModeMarkers, func(x *Topology) {
			x.Topics["side"] = Topic{Partitions: 4}
			x.Stages["loner"] = Stage{In: []string{"void"}, Out: []string{"side"}, Group: "g"}
			x.Topics["void"] = Topic{Partitions: 4}
			edit("report", func(s *Stage) { s.In = append(s.In, "side") })(x)
		}, []string{
			`topics.void: nobody writes it`,
			`stages.loner: nothing from the source "paths" reaches the stage`,
			`stages.report.in[2]: nothing from the source "paths" reaches topic "side"`}},
		{"sink topic with a reader", "", topic("asts", Topic{Partitions: 4, Sink: true}), []string{
			`topics.asts: its records are outside the batch (sink), but stage report reads it`}},
		{"source as sink", "", topic("paths", Topic{Partitions: 4, Sink: true}), []string{
			`topics.paths.sink: the source is inside the batch`}},
		{"sink stage beside a plain one", "", func(x *Topology) {
			x.Topics["out"] = Topic{Partitions: 1}
			edit("parse", func(s *Stage) { s.Out = append(s.Out, "out") })(x)
			edit("report", func(s *Stage) { s.Sink, s.Out = true, []string{"out"} })(x)
		}, []string{`topics.out: stage parse sends records of the batch to it, a sink stage others`}},
		{"partition count", "", topic("paths", Topic{Partitions: -1}),
			[]string{`topics.paths.partitions: -1 partitions, at most 10000 are possible`}},
		{"goka inputs not co-partitioned", "", topic("asts", Topic{Partitions: 6}), []string{
			`stages.report.in: goka needs inputs of equal partition counts: "asts" has 6, "digests" has 4`}},
		{"cycle in markers", ModeMarkers, edit("report", func(s *Stage) { s.Out = []string{"paths"} }), []string{
			`stages.digest: the stage is in a cycle, which markers cannot follow: use count, credit or observe`,
			`stages.parse: the stage is in a cycle, which markers cannot follow: use count, credit or observe`,
			`stages.report: the stage is in a cycle, which markers cannot follow: use count, credit or observe`}},
		{"foreign in markers", ModeMarkers, edit("parse", func(s *Stage) { s.Client = ClientForeign }), []string{
			`stages.parse.client: a foreign client does not send END on and does not report it: use the library, or observe`}},
		{"two inputs and outputs in ledger", ModeLedger, func(x *Topology) {
			x.Topics["index"] = Topic{Partitions: 4}
			edit("report", func(s *Stage) { s.Out = []string{"index"} })(x)
			x.Stages["store"] = Stage{In: []string{"index"}, Group: "g"}
		}, []string{`stages.report: two inputs and outputs: topic "index" would carry two records of one root: ` +
			`use count, credit, markers or observe`}},
		{"two writers in ledger", ModeLedger, edit("parse", func(s *Stage) { s.Out = append(s.Out, "digests") }), []string{
			`topics.digests: written by digest and parse: it would carry two records of one root: use count, credit, markers or observe`}},
		{"variable in ledger", ModeLedger, edit("parse", func(s *Stage) { s.Variable = true }), []string{
			`stages.parse.variable: a root would have any number of records: use count, credit, markers or observe`}},
		{"stateful goka in count", ModeCount, func(x *Topology) {
			x.Topics["index"] = Topic{Partitions: 4}
			edit("report", func(s *Stage) { s.Out, s.Table = []string{"index"}, true })(x)
			x.Stages["store"] = Stage{In: []string{"index"}, Group: "g"}
		}, []string{`stages.report.table: a goka stage with a table and outputs is not stateless: ` +
			`use a machine on the runtime, markers or observe`}},
		{"unknown mode", "guess", func(*Topology) {},
			[]string{`unknown mode "guess"; known are ledger, markers, count, credit, observe`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := goIndex()
			c.change(x)
			require.Equal(t, c.want, texts(x.Validate(c.mode)))
		})
	}
}

func TestLegsAtMost16(t *testing.T) {
	wide := func(n int) *Topology {
		x := &Topology{Name: "wide", Version: 1, Source: "in", Topics: map[string]Topic{"in": {}}, Stages: map[string]Stage{}}
		for i := range n {
			x.Stages[fmt.Sprintf("s%d", i)] = Stage{In: []string{"in"}, Group: fmt.Sprintf("g%d", i)}
		}
		return x
	}
	require.NoError(t, wide(16).Validate(ModeLedger))
	require.Equal(t, []string{"stages: 17 legs (inputs of stages that send nothing on), at most 16: " +
		"use count, credit, markers or observe"}, texts(wide(17).Validate(ModeLedger)))
	require.NoError(t, wide(17).Validate(ModeMarkers))
}

func TestReservedPrefixIsTheDeployments(t *testing.T) {
	x := goIndex()
	require.NoError(t, x.Check(Check{Prefix: "go"}))
	require.Len(t, texts(x.Check(Check{Prefix: "go-index"})), 3)
}

// TestRealCountsDecide: what is declared without a count is judged by the count it has.
func TestRealCountsDecide(t *testing.T) {
	x := goIndex()
	x.Topics["asts"] = Topic{}
	require.NoError(t, x.Validate(ModeMarkers))
	require.Equal(t, []string{`stages.report.in: goka needs inputs of equal partition counts: "asts" has 3, "digests" has 4`},
		texts(x.Check(Check{Partitions: Partitions{"paths": 4, "asts": 3, "digests": 4}})))
}

func texts(err error) []string {
	var faults Faults
	errors.As(err, &faults)
	var all []string
	for _, f := range faults {
		all = append(all, f.String())
	}
	return all
}
