// Package dispatcher carries out the orders of the controller: a record on the dispatch topic says which tasks of a batch
// are released, and where in the manifest they stand; the dispatcher writes them to the batch's queue.
//
//	dispatch --[lo, hi), chunk positions--> dispatcher --tasks--> work.<queue>
//	                                          ^
//	manifest --chunk by partition, offset-----+
//
// It has no state: any number of instances share a consumer group, and an order is committed after its tasks are in the
// queue. A crash in between repeats an order; tasks are known by their ids, so a repeat is harmless.
//
// # Non-obvious
//
//   - The index of a task is the First of the chunk's position plus its place in the chunk: tasks that tasks have added
//     do not know their index when they are written.
//   - The chunks of a batch have one partition. A fetch reads ahead, and what it finds is kept for the next order.
//   - A chunk that is gone belongs to a batch that was collected, or to a proposal that lost: it is counted and left out.
//   - A collected batch orders the chunks away that its tasks had added: only their positions are known, and only the
//     records there say their keys. The chunks of the list go with the job.
//   - An order for a queue that does not exist waits a while for it, then becomes a dead letter: other batches go on.
package dispatcher
