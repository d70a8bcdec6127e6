// Package markers is the machine of the END cascade, for one unit: one input partition of one stage. It decides when the
// unit has handled its whole share of a batch, from the END markers that arrive on the partition between the data.
//
//	Data(position, batch)  ─┐                                   ┌─> END to every partition of every output topic
//	End(position, batch,    ├─> [ set of sources per batch ] ─> Cut ─> batch.end of this unit to control
//	    source unit)        │                                   └─> State, to be kept with the offset
//	Drop(batch, run, round)─┘
//
// A unit is aligned on a batch when it has END from *every* upstream unit that can write to its partition (the set
// follows from the topology and from the partition counts that the batch pinned). Then, and only then, no record of the
// batch can still come on this partition.
//
// # The caller's obligations
//
//   - Records are given in the order of the partition, each once per life of the Unit; a record is given when it was
//     handled and all its outputs were handed to the producer.
//   - Cut takes the unit at a position. What it asks for is done in this order: wait until the outputs of all records
//     below Cut.Position are acked; send the END markers of Cut.Ends to every partition and wait for their acks; report
//     batch.end and wait; only then commit Cut.Position together with Cut.State. When a step fails, the Unit is thrown
//     away and restored from the last committed state.
//   - A restored unit is fed from its position on (Unit.Position), whatever the group's offset says. Of two states of a
//     unit the one with the higher position is right.
//   - Later batches are never held up: the caller goes on giving records while a cut is being done.
//
// # Non-obvious
//
//   - END from one upstream unit may overtake the data of another: that is why the first one proves nothing. It may
//     arrive twice (the sender crashed): that is why a number proves nothing, and a set of sources is kept.
//   - A partition without data is aligned like any other: END is all it ever sees.
//   - Sending END twice is harmless, before it is due is not. So the state is committed after the sending.
//   - After a batch ended its name is kept (a bounded number of them) so that repeated markers do not open it again;
//     Drop forgets it when the controller has said that the run is over.
//   - A batch of another version of the topology than the unit knows is never aligned: it shows as stuck and is named by
//     `explain`; guessing could end it early.
package markers
