// Package table is the view behind a sidecar: it follows the controller's table and the outcomes topic and answers from
// memory.
//
//	<prefix>.controller-table --+-> rows by batch id      (stale records are left out, see processors.Judge)
//	                            +-> position of each partition
//	<prefix>.outcomes ----------> reasons of tasks that did not end ok
//
// Nothing is answered before everything that stood in the topics at the start is loaded.
//
// # Non-obvious
//
//   - A control record is reached when the batch's row has it, or when the partition's position has passed it: records
//     that change nothing move the position only.
//   - Rows are decoded when they are asked for, and once.
package table
