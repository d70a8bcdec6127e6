// Package repair sends the records of a row that was quarantined back into the log of its machine.
//
//	log      ... A  B* C  D  [repair]  B' C' D' ...     B* met a fault: the row stands still
//	dead letter      B  C  D                            parked, in the order of the log
//
// The verb repair lifts the quarantine: from there on records reach the row again. Those that were parked meanwhile are
// in the dead letter; Run copies them behind the repair, in their order, with codecs.HeaderRepaired naming the place
// where each stood first.
//
// # Contract
//
// Every parked record of the key up to the given offset is sent once, however often Run is called and wherever it died:
// what has been sent back is read from the log itself. Two Runs for one key at the same time may send twice, which is
// harmless, as all duplicates are.
//
// # What is refused
//
//   - a record that the dead letter only names, because it was too large;
//   - a record older than the log: whether it has been sent back already is not known any more;
//   - a record of a former incarnation of the log (another topic id).
//
// Records that are in the dead letter for a fault of their own were never parked; they are left there.
//
// # Non-obvious
//
//   - The dead letter is complete for a row when the position of its table partition has passed the repair; the caller
//     waits for that.
//   - A record sent back has a new append time: deadlines that count from it (a parked START) begin then.
//   - A record that meets the same fault again is parked again, under its new position, with all behind it.
package repair
