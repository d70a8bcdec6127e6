// Package batch is the pure machine of the controller group: it knows of every batch whether all its tasks have an
// outcome, exactly once.
//
//	          START          seal(N)             every task has an outcome
//	(ORPHAN) -------> OPEN --------> SEALED(N) ---------------------------> COMPLETED | COMPLETED_WITH_FAILURES
//	                    |               |    policy                         FAILED
//	                    |               |    command                        CANCELLED
//	                    +---------------+--- deadline                       EXPIRED
//	                                         contradiction                  INCONSISTENT
//	ended --redrive--> SEALED (next round)   ended --retention--> COLLECTED
//
// # Rows
//
// The header row (key = batch id) holds the life of the batch and absolute counts per chunk. A chunk row (key = batch 0x00
// run 0x00 chunk) holds the outcomes of 65,536 tasks as sets. Completion is membership: a task counts when its index is
// below N and in a set, however often it is reported, and an index that is no task never counts.
//
// Tasks of feeder f are the indexes 0 .. N_f - 1 of that feeder; its chunks have the ids f<<16 | index>>16.
//
// # Replay
//
// The runtime may replay a record to a chunk that has not seen it while the header has. The header then must send it to
// the same chunks as the first time. So it keeps *offsets*: where the run began, where each feeder sealed, where each
// round began and ended. A report at an offset touches chunks iff its run is known, its round was in force at that
// offset, and its indexes could be tasks at that offset. What was late, stale or unexpected the first time is so again.
//
// # Modes
//
// ledger: every index in [0, N) has an outcome on every leg. markers: every unit that START names has reported END, and N
// is known; reports are optional and name what failed.
//
// # Non-obvious
//
//   - A deadline that has passed at a record's append time is acted on before the record: whether the nudge came early
//     or late changes nothing.
//   - Cancel and close are O(1): the header says what all open tasks became; readers derive it.
//   - Reports before START are kept for the current run and one newer run; START adopts them.
//     Of feeders that START does not have they count nothing. Where START never comes they are forgotten, after the event
//     that finds it so: that event may be the START.
//   - A chunk may come along with a report that names none of its tasks (release in a later round): it does not change,
//     and the header reads its counts as of the round.
//   - An index that was reported before the seal and turns out to be >= N is forgotten by its chunk at the seal.
//   - A second seal with the same values is a duplicate, with other values the batch is INCONSISTENT.
//   - Redrive: the header zeroes what runs again; a chunk follows when the first report of the round reaches it, and a
//     reader treats a chunk of an older round as if it had.
package batch
