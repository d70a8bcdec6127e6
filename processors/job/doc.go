// Package job is the pure machine of the workflow group: jobs of steps in sequence or as a DAG, where a step is one
// task or a fan-out, and a fan-out is a batch of the controller. Nothing of a batch is written again here.
//
//	                 await, admission             every step ended
//	job.requested -> WAITING ------> RUNNING ----------------------> COMPLETED | COMPLETED_WITH_FAILURES
//	                    |               |  no new step starts once
//	                    |               |  one has failed; running
//	                    +---cancel------+  ones are let finish -----> FAILED | EXPIRED | CANCELLED
//
//	ended --redrive--> RUNNING (next round)      ended --retention--> COLLECTED
//
//	step:  PENDING -> RUNNING -> COMPLETED | FAILED                             task
//	       PENDING -> SPLITTING -> RUNNING -> COMPLETED | WITH_FAILURES | ...   fan-out
//	       PENDING -> SKIPPED                                                   a predecessor did not complete
//
// # Fan-out
//
// A split is a task. Whoever runs it writes the sub-jobs to the manifest first and then proposes them; the first valid
// proposal in log order wins and becomes the batch, the chunks of the others are removed. So a splitter that crashes
// after k sub-jobs, or lists others at its second attempt, changes nothing.
//
// # Inputs
//
// Everything arrives on the jobs topic under the key of the job's row: requests, commands, nudges, results of single
// tasks, split proposals, and the ends of batches and jobs that somebody here waits for.
//
// # Non-obvious
//
//   - The definition of the job stands in the row from its request on: a changed job type never touches a running job.
//   - The run id of a job's batches is the position of its request, so a job id used again cannot meet old batches.
//   - A job id is free again only after its row was collected; a repeated request with the same ce_id is a duplicate.
//   - With a limit per customer the row of a job has the key customer 0x00 job, so that all jobs of a customer and the
//     row that admits them (key customer) share one partition and one order.
package job
