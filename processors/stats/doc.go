// Package stats counts what the events log tells about jobs, steps, tasks and batches: by job type, step and queue, and
// by UTC day of the append time. It is a pure machine for the group stats, and the reader of its table.
//
//	row of           job type  step  queue
//	jobs             x                       job.requested .started .completed .failed .cancelled
//	steps and tasks  x         x     x       step.started .completed, subjobs.completed of batches with an owner
//	batches                          x       subjobs.completed of batches without an owner
//	                                         batch.started and terminal batch events without an owner
//
// # Rows
//
// Events of one step come from many partitions, and a row has one writer. So each partition has rows of its own: the key
// is partition 0x00 type 0x00 step 0x00 queue 0x00 day (days since 1970-01-01). The reader adds them up (Merge): counts
// add, sketches merge. The machine is Local: the runtime takes every event where it is.
//
//	rows := ...                       // all rows of the table, from a view whose Header is IsHeader
//	for _, r := range stats.Merge(rows, stats.ByDay) {
//	    fmt.Println(r.Snapshot())
//	}
//
// # Exactness
//
// Counts are exact: an event is in its row once, over restarts (the row knows the offset of its last event) and for
// records sent twice (the runtime drops repeats by their source). Quantiles and worker-seconds are within
// codecs.SketchAccuracy of the timings that were reported.
//
// # Non-obvious
//
//   - A task counts once per round: one that a redrive runs again counts again, as does its batch.
//   - A name that is no id (a foreign event) is counted as "_".
//   - batch.* events of a batch that belongs to a step are not counted: the step is.
//   - An event that cannot be stepped goes to the dead letter alone: every next event lifts the quarantine.
package stats
