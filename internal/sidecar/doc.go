// Package sidecar answers over HTTP what a deployment knows of its batches, takes commands, and shows a dashboard.
//
//	        quiesce.controller-table            quiesce.events
//	                 |                                |
//	      +----------v-----------+          +---------v--------+
//	      | Batches: rows, parts |          | Feed: kgo reader |
//	      +----------+-----------+          +---------+--------+
//	                 |                                |
//	GET  ------> handlers <--- explain: committed offsets, ends, members (on demand)
//	POST ------> handlers ---> Log ---> quiesce.control ---> controller ---> the table again
//
// Reads come from a view of the controller's table; nothing is cached beside it. Writes are records of the control topic,
// acknowledged by all replicas before the answer; the answer carries their position, and a read with
// at_least=<position> waits until the controller has made them durable in the table.
//
// # Refusals
//
// Unknown batch (404), wrong state (409) and stale version (412) are judged on the view. The view trails the log, so a
// refusal is given only after the view has reached the end that the log had when the request came; a write is never
// refused because of another write that the view had not seen yet. The row judges again when the record reaches it, and
// its answer stands in GET /v1/batches/{id}/commands/{command}.
//
// # Non-obvious
//
// A list page scans a bounded number of rows, so it may be short or empty before the end; only an absent next ends a walk.
// Pages go by id, so a batch that exists during the whole walk is seen exactly once.
//
// While the view is loading, every read answers 503 with the percentage: never a part of the data.
//
// A browser on the same machine can reach a loopback port. Without a token the server therefore accepts only loopback
// names in Host, refuses cross-origin writes, and takes JSON bodies only.
package sidecar
