// Package worker works off the tasks of a queue: sub-jobs of a batch, single tasks of a step, and splits.
//
//	err := worker.Run(ctx, worker.Config{Bootstrap: "localhost:9092", Queue: "invoices.render",
//		Handler: func(ctx context.Context, t *worker.Task) (worker.Result, error) { ... }})
//
// # A task's way
//
//	queue --Receive--> attempt --ok, Skip(reason), Fail(err)-------------------> outcome --acked--> Done
//	  ^                  |  \--error, panic, time-out, attempts are left--> tier --acked--> Done     (attempt + 1)
//	  |                  |                          no attempt is left--> dead letter, outcome ----> Done
//	  +-----Release------+  the delivery or the process ends: nothing is reported
//
// The outcome of a sub-job goes into a batch.report with others of its batch, that of a step's task is
// step.task-completed, that of a split is split.proposed. A task that was delivered too often is lost: it is what kills
// its process. At-least-once: a handler may run again for a task that it has finished; its side effects should be
// idempotent by batch, run and index. The first outcome in the log stands.
//
// # Handlers
//
// A handler returns when its context is done. The context ends with the attempt's time-out, when the task belongs to
// somebody else, or when the worker has waited long enough for a shutdown. A handler that goes on after its time-out is
// left alone: the attempt is over, the worker has one slot less, and after Config.Stuck of them Run returns ErrStuck: the
// process should exit.
//
// # Splitters
//
// A splitter calls emit once a task, in an order that is its own. Tasks stand in the manifest before they are proposed;
// another attempt may list others: the first proposal in the log wins. At most 1,024 chunks, which grow from 1,000 tasks
// or 256 KiB to 256,000 tasks or 3 MiB, so memory does not depend on the number of tasks.
//
// # Commands
//
// Exec makes a handler of any command: payload on stdin, result on stdout, exit code 0 ok, 10 skip, 20 fail without
// retry, anything else a failed attempt. ExecSplitter makes a splitter: one JSON line on stdout is one task.
//
// # Non-obvious
//
//   - A time-out counts from the attempt's start: a task that waits in a queue or a tier has none.
//   - A delay that is longer than the longest tier is waited for in several rounds: Task.not_before says until when.
//   - An interrupted handler that returns no error is interrupted nevertheless: it may have stopped in the middle.
//   - A report leaves at once when none is under way; those that come meanwhile share the next one.
package worker
