// Package feeder feeds a batch: START to the control topic, the records to the source of the topology, and, when all of
// them are acked, the seal that says how many there are.
//
//	Start --> Send --> Send --> ... --> Seal --> total
//	 START     0        1               [END on every partition: markers]  batch.seal
//
// # Contract
//
//   - Records have dense indexes 0, 1, 2, ... in the order of Send, and leave in that order on each partition.
//   - The seal is sent only after every record is acked by all replicas.
//   - The partition of a record is a function of its key (or, without one, of its index) and of the partition count at
//     the first START.
//   - With a checkpoint file a crash costs nothing: the next feeder of the same configuration takes the same run up,
//     is given the same input from its beginning, skips what is acked, and sends the rest. What was sent and not acked
//     in time is sent again under the same index, so that nothing counts twice. An input that differs in what was fed
//     already is refused (ErrInputChanged).
//   - Several feeders of one batch (Config.Feeders) have an index space each; the batch is sealed when all are.
//
// # Non-obvious
//
//   - The checkpoint is written before START, so that a crash in between does not leave a second run behind.
//   - Feeding a sealed batch again with its checkpoint sends no record, and repeats START and seal: both are repeats to
//     the controller.
package feeder
