// Package stage makes a service out of a handler: a plain consumer group that reads the inputs of a stage, calls the
// handler for each record, sends what it returns, and tells the controller what has become of every task.
//
//	poll -> queue per partition -> handler -> producer          (one goroutine a partition, in order)
//	                                  |
//	                                 cut: outputs acked -> END markers acked -> reports acked -> offset committed
//
// # Contract
//
//   - An offset is committed only after every earlier record of the partition was handled, its outputs were acked by all
//     replicas, and what it means for its batch was reported. So a crash repeats work and loses none.
//   - Repeats are harmless: children carry their root's index, reports are sets of indexes, END is a set of senders.
//   - A failed attempt is repeated in place. When the last one fails the outcome is failed, with the reason, and the
//     record goes to the dead letter; the partition goes on.
//   - A record without batch headers goes to the dead letter and nowhere else (unless Config.Untagged).
//   - A child's partition is a function of its key (or, without one, of the input's offset) and of the partition count
//     that the batch pinned at START.
//
// # Modes
//
// A stage learns the mode of a batch from its records: the header quiesce-mode (see codecs.Plan), which feeders set and
// stages pass on. Without it the batch is a ledger one. Records of batches of different modes may interleave.
//
//	ledger    an end stage reports the outcome of each task on its leg, many to a report; a stage that fails or filters
//	          a record reports that for every leg behind it
//	markers   END goes on when the unit is aligned (package markers), and batch.end is reported; failures are reported
//	          as they happen, so that they have names
//	others    the records and their headers are passed on; failures are reported
//
// END markers are handled whatever the mode says.
//
// # The state of a unit
//
// What a unit knows of its batches travels in the metadata of its offset commits, or, when it is larger than 2 KiB, in
// the topic <prefix>.units with a pointer in the metadata. A new owner starts at the position of that state. When there
// is none that fits (a tool moved the offsets, records were deleted unread, the topic was created anew) the unit is
// reset, and the controller is told which open batches cannot be trusted any more: they become INCONSISTENT rather than
// complete early.
//
// # Non-obvious
//
//   - Handling goes on while a cut is on its way; a cut waits only for what was produced before it.
//   - Fetches are never blocked by a slow partition: it is paused, and a rebalance does not wait for it longer than
//     Flow.DrainFor.
//   - Reports and markers are sent before the offset is committed. The other order would lose them in a crash.
package stage
