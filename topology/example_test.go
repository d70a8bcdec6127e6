package topology_test

import (
	"fmt"

	"github.com/quiesce/quiesce/topology"
)

func ExampleLoad() {
	_, err := topology.Load([]byte(`
topology: shop
version: 1
source: orders
topics: {orders: {partitions: 6}, paid: {partitions: 6}}
stages:
  charge: {in: [oders], out: [paid], group: shop.charge}
  ship:   {in: [paid], grp: shop.ship}
`), topology.ModeMarkers)
	fmt.Println(err)
	// Output:
	// line 7: stages.charge.in[0]: topic "oders" is not declared
	// line 8: stages.ship.grp: unknown key; known are in, out, group, client, sink, table, variable
	// line 8: stages.ship.group: missing: the consumer group that reads for the stage
}

func ExampleTopology_Start() {
	shop := &topology.Topology{
		Name: "shop", Version: 1, Source: "orders",
		Topics: map[string]topology.Topic{"orders": {Partitions: 6}, "paid": {Partitions: 6}},
		Stages: map[string]topology.Stage{
			"charge": {In: []string{"orders"}, Out: []string{"paid"}, Group: "shop.charge"},
			"ship":   {In: []string{"paid"}, Group: "shop.ship"},
		},
	}
	start, err := shop.Start(topology.ModeMarkers, nil) // nil: the declared counts are real
	if err != nil {
		panic(err)
	}
	for _, u := range start.Units {
		fmt.Println(u.Stage, u.Topic, u.Partitions)
	}
	// Output:
	// charge orders 6
	// ship paid 6
}

func ExampleSystem() {
	for _, spec := range topology.System("quiesce", 8)[:3] {
		fmt.Println(spec.Name, spec.Partitions, spec.Configs[topology.CleanupPolicy])
	}
	// Output:
	// quiesce.control 8 delete
	// quiesce.controller-table 8 compact
	// quiesce.status 8 compact
}

func ExampleLoadJobType() {
	job, err := topology.LoadJobType([]byte(`
job: invoices
version: 1
steps:
  prepare: {task: {queue: invoices.prepare}}
  render: {after: [prepare], fan_out: {split: invoices.split, queue: invoices.render, window: 64}}
  report: {after: [render], task: {queue: invoices.report}}
`))
	if err != nil {
		panic(err)
	}
	def, err := job.Definition()
	if err != nil {
		panic(err)
	}
	for _, s := range def.Steps {
		fmt.Println(s.Name, s.After)
	}
	// Output:
	// prepare []
	// render [prepare]
	// report [render]
}
