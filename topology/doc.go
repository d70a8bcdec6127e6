// Package topology declares what batches flow through: topics, the services (stages) between them, and the topics that
// a deployment itself needs. It is data and functions of data: it reads no broker, no clock and no file.
//
// # File
//
//	topology: go-index
//	version: 1                          # a whole number; the same version never changes its meaning
//	source: paths                       # the topic that feeders write
//	topics:
//	  paths: {partitions: 4}            # without partitions: the topic exists already
//	  audit: {partitions: 1, sink: true}  # its records are outside the batch
//	stages:
//	  parse:
//	    in: [paths]
//	    out: [asts]
//	    group: go-index.parse           # consumer group, one stage each
//	    client: library                 # library (default) | goka | foreign
//	    sink: false                     # true: all its outputs are outside the batch
//	    table: false                    # goka only: the group has a table, topic <group>-table
//	    variable: false                 # true: a record may give any number of records
//
// Load refuses what it does not know and reports every fault with its line, not only the first.
//
// # Words
//
// A unit is one input partition of a stage. A leg is an end: a stage that sends nothing on within the batch, and one of
// its inputs. A stage is an end when it has no outputs, or only sinks.
//
// # Modes
//
//	           refused
//	ledger     cycles, more than 16 legs, a topic that could carry two records of one root, variable numbers
//	markers    cycles, foreign clients (they do not send END on)
//	count      goka stages with a table and outputs
//	credit     -
//	observe    -
//
// # Job type file
//
//	job: invoices
//	version: 1
//	complete_by: 90m                    # after the start; absent = no deadline
//	retention: 720h                     # from the end to the collection
//	steps:
//	  s1: {task: {queue: invoices.prepare, retry: {attempts: 1}, attempt_timeout: 5m}}
//	  s2:
//	    after: [s1]
//	    fan_out:
//	      split: invoices.split         # queue of the splitter
//	      queue: invoices.render        # queue of the sub-jobs
//	      window: 64                    # released at once; default 1000
//	      retry: {attempts: 5, first: 1s, factor: 4, max: 5m}   # the defaults
//	      attempt_timeout: 2m           # absent = none
//	      policy: {tolerate: 1%, min_sample: 100}   # or {kind: fail_fast}; default {kind: continue}
//	      complete_by: 60m              # after the step's start
//	      no_progress_for: 10m          # since the last outcome
//	      on_deadline: close            # expire (default) | close
//	      open_children: false          # true: sub-jobs may add sub-jobs
//	      max_total: 10000000
//
// Durations are Go's: 300ms, 90s, 2m, 720h.
//
// # Non-obvious
//
// A topology's digest is taken of a canonical form in which defaults are absent, so that a new optional field changes no
// digest. A job type's form has its defaults filled in: they are what the job does.
// Units and legs are ordered by name; a leg's number is its place. Real partition counts, not declared ones, decide
// (Resolve, Start).
package topology
