package worker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/quiesce/quiesce/codecs"
)

// Task is one unit of work. Handlers must not change it.
type Task = codecs.Task

// Result is what a handler returns with a task that is ok.
type Result struct {
	// Payload is the result of a step's single task: small by value, large by reference. Nobody reads that of a sub-job.
	Payload *codecs.Payload
	// Children are tasks that a sub-job adds to its batch (open_children); one chunk of the manifest holds them, 3 MiB.
	Children []*codecs.ManifestTask
}

// MaxResult bounds a result by value, in bytes.
const MaxResult = 64 << 10

// Handler runs one attempt at a task. An error is a failed attempt; see Skip and Fail.
type Handler func(ctx context.Context, t *Task) (Result, error)

// Splitter lists the sub-jobs of a fan-out step, in order, by calling emit for each.
type Splitter func(ctx context.Context, t *Task, emit func(*codecs.ManifestTask) error) error

// ErrStuck is returned by Run when too many handlers ignore their time-out.
var ErrStuck = errors.New("handlers ignore their time-out")

// skipped and failed are how handlers say that there is no use in another attempt.
type skipped struct{ reason string }

func (e skipped) Error() string { return "skipped: " + e.reason }

type failed struct{ err error }

func (e failed) Error() string { return e.err.Error() }
func (e failed) Unwrap() error { return e.err }

// Skip ends the task as skipped.
func Skip(reason string) error { return skipped{reason} }

// Fail ends the task as failed, without another attempt.
func Fail(err error) error {
	if err == nil {
		err = errors.New("failed")
	}
	return failed{err}
}

// Counters counts what a worker did since it started. Safe for concurrent use.
type Counters struct {
	Attempts, Retries, Interrupted, Waited, Stuck atomic.Uint64
	OK, Failed, Skipped, TimedOut, Lost           atomic.Uint64 // tasks that ended, by outcome
}

func (c *Counters) ended(o codecs.Outcome_Code) {
	switch o {
	case codecs.OK:
		c.OK.Add(1)
	case codecs.Skipped:
		c.Skipped.Add(1)
	case codecs.TimedOut:
		c.TimedOut.Add(1)
	case codecs.Lost:
		c.Lost.Add(1)
	default:
		c.Failed.Add(1)
	}
}

// String is one stable line.
func (c *Counters) String() string {
	return fmt.Sprintf("attempts=%d ok=%d failed=%d skipped=%d timed_out=%d lost=%d retries=%d interrupted=%d stuck=%d",
		c.Attempts.Load(), c.OK.Load(), c.Failed.Load(), c.Skipped.Load(), c.TimedOut.Load(), c.Lost.Load(), c.Retries.Load(),
		c.Interrupted.Load(), c.Stuck.Load())
}
