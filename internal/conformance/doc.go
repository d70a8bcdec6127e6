// Package conformance runs scripts against a deployment and says whether it answers as it should. A script speaks
// nothing but the wire: control records as JSON in, lifecycle events and dead letters out.
//
//	id: C30
//	title: two batches with identical task ids interleaved do not touch each other
//	source: spring-batch 4945
//	steps:
//	  - {send: batch.start, batch: a, data: {run: r}}
//	  - {send: batch.report, batch: a, each: 0-2, data: {run: r, items: [{first: $i, outcome: ok}]}}
//	  - {await: batch.completed, batch: a}
//	expect:
//	  - {batch: a, events: {batch.started: 1, batch.completed: 1}, counts: {total: 3, ok: 3}}
//
// Batch names of a script are local: a run gives each its own id, so that a script can be run again on the same
// deployment. After the last step a fence is sent to every partition: a batch starts, is sealed with no task, and
// completes. When the second of two fences has completed, everything that the script caused is acknowledged in its topic,
// because a cut starts after the one before it is wholly done; what stands there then is read to its end. So "nothing more
// comes" is checked without waiting.
//
// # Steps
//
//	send: TYPE       a control record of that event type; data is its JSON
//	  batch: NAME    whose (default a)
//	  each: LO-HI    one record for each i in the range; "$i" in data is the number
//	  times: N       each record N times, with the same id
//	  key: "-"       a record without key
//	  value: TEXT    these bytes instead of data
//	  headers: {..}  headers to replace; an empty text removes one
//	await: TYPE      wait until that event of the batch was seen
//
// # Expectations, for each batch
//
//	events:    how many events of each type there are, counted by distinct ids; of types that end a batch, those that
//	           are not named must not be there
//	state, empty, counts, audit, round, reason
//	           of the last event that carries a state
//	dead_letters: how many records of this batch were put there, and dead_letter: a text in each one's reason
package conformance
