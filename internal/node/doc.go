// Package node runs roles of a deployment in one process: it makes the topics be as they have to be, then starts what
// it is asked to.
//
//	Start -> topics created and verified -> roles, workers -> Stop
//
//	controller   goka group: batches            dispatcher   released tasks into their queues
//	workflow     goka group: jobs               notifier     goka group: subscriptions; and the deliveries
//	stats        goka group: statistics         sidecar      HTTP, views, dashboard
//
// The caller owns the node: it calls Stop exactly when it wants the roles drained; Done tells it that one of them
// failed.
//
// # Jobs in one process
//
// Handlers and splitters can run beside the roles:
//
//	n, err := node.Start(ctx, node.Config{
//		Bootstrap: []string{b.Bootstrap()},
//		Jobs:      node.Jobs{Types: []*topology.JobType{invoices}},
//		Workers: []worker.Config{
//			{Queue: "invoices.split", Splitter: customers},
//			{Queue: "invoices.render", Handler: render, Concurrency: 8},
//		},
//	})
//
// # Non-obvious
//
//   - Every node of a deployment has the same Jobs: the workflow refuses a definition that names a queue which is not
//     among them, since a task for it could be sent to nobody and would hold up the other jobs of its partition.
//   - A group never gives up, dispatcher and workers start again when they fail; what ends a node is a sidecar that cannot
//     serve, or a worker whose handlers hang.
package node
