// Package table answers a sidecar's reads from views of a deployment.
//
//	<prefix>.controller-table ---> processors.View       rows, parts, positions
//	<prefix>.outcomes -----------> processors.TopicView  reasons of tasks that did not end ok
//	<prefix>.workflow-table -----> processors.View       rows of jobs and of customers
//	<prefix>.stats-table --------> processors.View       rows of each partition of the events
//
// Nothing is answered before everything that stood in the topics at the start is loaded. All copies are on disk: a
// restart reads what is new.
//
// # Non-obvious
//
//   - A control record is reached when the batch's row has it, or when the partition's position has passed it: records
//     that change nothing move the position only.
//   - Rows are decoded for each answer and never shared, so nothing is locked while one is printed.
//   - Missing and tasks work on sets, range by range: their cost is that of the page, not of the batch.
package table
