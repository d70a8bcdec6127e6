// Package sidecar answers over HTTP what a deployment knows of its batches and jobs, takes commands, and shows a dashboard.
//
//	quiesce.controller-table   .workflow-table   .stats-table      quiesce.events
//	           |                      |               |                  |
//	+----------v-----------+    +-----v-----+    +----v----+   +---------v--------+
//	| Batches: rows, parts |    |   Jobs    |    |  Stats  |   | Feed: kgo reader |
//	+----------+-----------+    +-----+-----+    +----+----+   +---------+--------+
//	           |                      |               |                  |
//	GET  ------> handlers <--- explain: committed offsets, ends, members (on demand)
//	POST ------> handlers ---> Log ---> quiesce.control ---> controller ---> its table again
//	                           Log ---> quiesce.jobs    ---> workflow   ---> its table again
//
// Reads come from views of the machines' tables; nothing is cached beside them. Writes are records of the topics that the
// machines read, acknowledged by all replicas before the answer; the answer carries their position, and a read with
// at_least=<position> waits until the machine has made them durable in its table.
//
// # Refusals
//
// Unknown batch or job (404), wrong state (409) and stale version (412) are judged on the view. The view trails the log, so a
// refusal is given only after the view has reached the end that the log had when the request came; a write is never
// refused because of another write that the view had not seen yet. The row judges again when the record reaches it, and
// its answer stands in GET /v1/batches/{id}/commands/{command}.
//
// # Non-obvious
//
// A list page scans a bounded number of rows, so it may be short or empty before the end; only an absent next ends a walk.
// Pages go by id, so a batch that exists during the whole walk is seen exactly once.
//
// A running fan-out step is shown with the counts of its batch: the job's row learns them when the batch has ended.
//
// Two requests for one job id may both be accepted when neither has reached the view; the row takes the first, and its
// request id says which that was.
//
// While a view is loading, every read answers 503 with the percentage: never a part of the data.
//
// A browser on the same machine can reach a loopback port. Without a token the server therefore accepts only loopback
// names in Host, refuses cross-origin writes, and takes JSON bodies only.
package sidecar
