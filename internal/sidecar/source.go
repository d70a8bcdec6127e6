package sidecar

import (
	"context"
	"errors"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/processors/stats"
)

// Errors of the sources.
var (
	// ErrUnknown: there is no such batch, or no such command in its row.
	ErrUnknown = errors.New("unknown")
	// ErrNotReady: the view is being loaded.
	ErrNotReady = errors.New("view is recovering")
)

// Readiness of a view.
type Readiness struct {
	Percent float64 // loaded, 0 to 100
	OK      bool    // everything that stood in the table at start is loaded
	// Stale: loaded, but the connection to the broker is gone; the data may be old.
	Stale bool
}

// Table is a view of a machine's table. Methods are safe for concurrent use; all but Readiness and Watch fail with
// ErrNotReady while the view loads.
type Table interface {
	Readiness() Readiness
	// Reached says whether the record of the machine's log at p is durable in the table, or had no effect on it. key may be
	// empty: then only the partition as a whole counts.
	Reached(key string, p api.Position) (bool, error)
	// Watch returns a channel that gets a value after a change of the row or its partition's position; "" = of any row.
	// Changes in quick succession may give one value. stop must be called.
	Watch(key string) (changed <-chan struct{}, stop func())
}

// Batches reads the controller's table.
type Batches interface {
	Table
	// Get returns one batch, or ErrUnknown.
	Get(id string) (*api.Batch, error)
	// Scan returns at most n batches with ids above after, in id order, and the id to go on after; "" = the end.
	Scan(after string, n int) (batches []api.Batch, next string, err error)
	// Tasks returns the tasks from an index on that have one of the outcomes (none = all), in index order. It looks at a
	// bounded part of the batch, so a page may be short before the end.
	Tasks(id string, outcomes []string, from Place, n int) (TaskPage, error)
	// Missing returns at most n ranges of tasks without outcome from an index on, in index order.
	Missing(id string, from Place, n int) (MissingPage, error)
	// Command returns the row's answer to a command, or ErrUnknown.
	Command(id, command string) (*api.Command, error)
}

// Jobs reads the workflow's table. A key is the job's id, or customer 0x00 job.
type Jobs interface {
	Table
	// Get returns one job, or ErrUnknown.
	Get(key string) (*api.Job, error)
	// Scan looks at n rows with keys above after, in key order, and returns the jobs among them and the key to go on after;
	// "" = the end.
	Scan(after string, n int) (jobs []api.Job, next string, err error)
	// Command returns the row's answer to a command, or ErrUnknown.
	Command(key, command string) (*api.Command, error)
}

// Stats reads the table of the statistics.
type Stats interface {
	Readiness() Readiness
	// Rows returns the rows whose keys are wanted: one for each partition of the events that has told something.
	Rows(wanted func(stats.Key) bool) ([]*stats.Row, error)
}

// Place is where a page of tasks begins: each feeder numbers its own tasks from 0.
type Place struct{ Feeder, Index uint32 }

// TaskPage is a page of tasks. Next is where to go on; nil = the end.
type TaskPage struct {
	Run   string
	Tasks []api.Task
	Next  *Place
}

// MissingPage is a page of missing ranges. Next is where to go on; nil = the end.
type MissingPage struct {
	api.Missing
	Next *Place
}

// Log is the topic that a machine reads.
type Log interface {
	// Append writes one record under the key of a row and returns its position when all replicas have it.
	Append(ctx context.Context, key string, ev *codecs.Event) (api.Position, error)
	// Last returns the position of the last record in the key's partition; Offset -1 = there is none.
	Last(ctx context.Context, key string) (api.Position, error)
}

// Feed is the event topic.
type Feed interface {
	// Open starts reading. from gives the next offset of some partitions; the others start at their end, or at their
	// beginning when fromStart is set. The stream belongs to the caller, who must close it.
	Open(ctx context.Context, from Cursor, fromStart bool) (Stream, error)
}

// Stream is one reading of the event topic.
type Stream interface {
	// Next blocks until there are events, or ctx ends. Events of one partition come in order.
	Next(ctx context.Context) ([]api.Event, error)
	// Cursor is the position after everything that Next has returned.
	Cursor() Cursor
	Close()
}
