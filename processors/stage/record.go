package stage

import (
	"context"
	"errors"
	"time"

	"github.com/quiesce/quiesce/codecs"
)

// Handler handles one record and returns what is to be sent on. It is called for the records of a partition one after
// the other, for different partitions at the same time, and again for a record whose attempt failed or whose process
// died: the same record must always give the same number of outputs to the same topics.
//
// In a ledger batch a record gives exactly one output to each declared topic; a topic without one is filtered: the task
// is skipped on every leg behind it. In the other modes any number is right.
//
// An error or a panic is one failed attempt. Skip filters the record. NoRetry fails it at once.
type Handler func(ctx context.Context, r *Record) ([]Output, error)

// Record is a data record of a batch (or, with Config.Untagged, of none).
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	Time      time.Time
	Key       []byte
	Value     []byte
	Headers   []codecs.Header // all of them; not to be changed

	Batch   string // "" = the record belongs to no batch
	Run     string
	Round   uint32
	Feeder  uint32
	Index   uint32 // of the root that the record descends from
	Attempt int    // 1, 2, ...
}

// Output is a record to send. The headers that tie it to its batch, and traceparent, are added to it; those it has
// itself are not needed and are ignored, traceparent apart.
type Output struct {
	Topic   string
	Key     []byte // decides the partition; nil = spread by the input's offset
	Value   []byte
	Headers []codecs.Header
}

// Skip is the error of a handler that filters a record: nothing is sent on, and the outcome is skipped.
var Skip = errors.New("skipped") //nolint:revive,staticcheck // no fault: like fs.SkipDir it says what to do

// NoRetry marks an error that another attempt cannot cure.
func NoRetry(err error) error { return noRetry{err} }

type noRetry struct{ error }

func (e noRetry) Unwrap() error { return e.error }
