// Package bench measures Quiesce and, in the same run on the same machine, what it is to be compared with: figures of
// one run alone say little on a shared machine, ratios side by side do.
//
//	latency   last completion produced -> completion event consumed
//	ingest    many batches, K completions a record, exact
//	hot       one batch of many tasks
//	recovery  a controller takes over a table of collected and open batches
//	memory    resident memory of a controller in a process of its own: idle, with open and with collected batches
//	beside    small batches beside a hot one that is fed at half of what it can take
//	fanout    jobs of sub-jobs that do nothing: request, split, queue, workers, completion event
//
// ingest and hot are run four times over the same preloaded records:
//
//	quiesce   the controller: durable before visible, de-duplicated, exact
//	floor     a bare franz-go consumer doing the same Step, no state kept, nothing produced but the results
//	raw       a bare franz-go consumer that looks at nothing
//	plain     goka with Value, SetValue and Emit a record (acks=all, idempotent, 5 ms / 1 MiB flush)
//
// Time runs from the first record handled to the last result consumed (raw: to the last record). Input is written
// before. Each scenario is one Result: one JSON line.
package bench
