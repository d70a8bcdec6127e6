// Package replay works with the recorded input of a machine: what is in the log is all that a machine ever saw, so the
// same log gives the same rows and messages again, without a broker.
//
//	topic --Record--> file              a recording (codecs.RecordedTopic)
//	file or topic --Fold--> State       rows, and a transcript of what was read and answered
//	State --Compare--> lines            against the rows of an earlier fold
//	table and topic --Diff--> Report    rows of a live table that the log does not explain
//	file or topic --Into--> topic       the same events in another deployment
//
// # Contract
//
// A Source gives the records of one topic, in offset order within a partition, the same ones at every call of Each: a
// live topic is read up to the ends that it had when it was opened. Fold gives equal rows and an equal transcript for an
// equal source and machine, however often it runs.
//
// Fold follows the rules of the runtime that are functions of the input: records that cannot be decoded and records of
// a quarantined row go to the dead letter, a record on the wrong partition is left to its moved copy, a machine's output
// that is repeated is dropped (one mark per source partition), rows that a machine gives up are deleted.
//
// # Non-obvious
//
//   - A row whose machine panics is quarantined from that record on and stands as it was before it. The fold reads the
//     source again for that: it remembers the record and starts over.
//   - The runtime deletes a given-up row some time later, the fold at once. An event that arrives in between meets the
//     old row there and a new one here: Diff does not judge such rows, and says so.
//   - Diff reads the table first and then folds each input partition up to the table partition's position row: below it
//     every row is durable. A row that is already ahead of it is not judged. Nor is anything that the log no longer
//     explains: a log start above 0, an adopted topic, a quarantined row.
//   - Into leaves nudges out, because the other deployment makes its own, and records that lay on a wrong partition,
//     because their moved copies follow. Append times are those of the new log: deadlines that count from them move.
package replay
