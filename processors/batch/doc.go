// Package batch is the controller's machine: one row for each batch id, which folds START, seals, reports, ENDs, commands
// and nudges of the control topic into the state of the batch, and says once how each round of a run ended.
//
//	            START          all feeders sealed        every task has an outcome
//	orphan ───▶ open ────────▶ sealed(N) ──────────────▶ completed | completed_with_failures
//	              │               │
//	              └───────┬───────┘──▶ failed (policy) | cancelled | expired | inconsistent
//	                      │
//	                   redrive: round + 1, sealed again
//
// Completion is membership, never cardinality: every index of [0, N) has an outcome on every leg (ledger), or every unit
// has reported END (markers). Sets make it idempotent and free of order: reports may be repeated and may come before
// START and before the seal. The first outcome of a task in log order stands.
//
// # Non-obvious
//
//   - An index at or above N is unexpected and never counts; one above max_total is unexpected at once.
//   - In the mode markers, failures are counted from the reports that name the tasks, not from the numbers that ENDs
//     carry: a record that was executed twice after a crash is counted twice there.
//   - After the end nothing but redrive changes the outcome sets: what comes then is counted as late.
//   - Deadlines are compared with the append time of whatever record comes; a nudge is such a record.
package batch
