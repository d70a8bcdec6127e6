// Package conformance runs scripts against a deployment and says whether it answers as it should. A script speaks
// nothing but the wire: records of the logs of batches and jobs as JSON in; lifecycle events, tasks, deliveries and dead
// letters out.
//
//	id: C30
//	title: two batches with identical task ids interleaved do not touch each other
//	source: spring-batch 4945
//	steps:
//	  - {send: batch.start, of: a, data: {run: r}}
//	  - {send: batch.report, of: a, each: 0-2, data: {run: r, items: [{first: $i, outcome: ok}]}}
//	  - {await: batch.completed, of: a}
//	expect:
//	  - {of: a, events: {batch.started: 1, batch.completed: 1}, counts: {total: 3, ok: 3}}
//
// Names of batches and jobs in a script are local: a run gives each its own id, so that a script can be run again on the
// same deployment. The batch of step s of job a is a.s.
//
// A script about jobs is its own splitter and its own workers: the queue it names "$queue" has no others. A role or a queue
// that a script needs and a deployment does not have is named, and the script is not run.
//
// After the last step a fence is sent to every partition: a batch starts, is sealed with no task, and completes; a job is
// requested and cancelled. When the second of two fences has ended, everything that the script caused is acknowledged in
// its topic, because a cut starts after the one before it is wholly done; what stands there then is read to its end. So
// "nothing more comes" is checked without waiting.
//
// # Steps
//
// Each is about one batch or job: of, default a.
//
//	send: TYPE       a record of that event type; data is its JSON
//	  each: LO-HI    one record for each i in the range; "$i" in data is the number
//	  times: N       each record N times, with the same id
//	  key: "-"       a record without key
//	  value: TEXT    these bytes instead of data
//	  headers: {..}  headers to replace; an empty text removes one
//	  in data        "$queue" the queue, "$run" the run of a job's batch, "$large" 192 KiB in base64
//	await: TYPE      wait until that event was seen
//	settle: true     wait until all that was caused so far has come, as at the end
//	absent: TYPE     settle; that event must not have been seen; "task" stands for tasks beyond those taken
//	propose: STEP    list the sub-jobs of a step, as a splitter does: the chunk of the manifest, then split.proposed
//	  tasks: N       how many
//	  as: NAME       of the proposal (default p)
//	  round, times   of the proposal
//	  dies: true     after the chunk: nothing is proposed
//	take: N          wait until N more tasks have come to the queue
//
// # Expectations
//
//	events:     how many events of each type there are, counted by distinct ids; of types that end a batch or a job, those
//	            that are not named must not be there
//	state, empty, counts, audit, round, reason
//	            of the last event that carries a state
//	steps:      the last state of each step of a job
//	tasks:      how many distinct tasks came to the queue; a task of another round is another task
//	deliveries: how many notifications of each event there are, counted by distinct ids
//	dead_letters: how many records were put there, and dead_letter: a text in each one's reason
package conformance
