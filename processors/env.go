package processors

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/quiesce/quiesce/codecs"
)

// producer sends records. done is called once, from any goroutine, in send order per partition; it must not block.
// Partition -1 = by key. Records to one partition keep their order; after an error none of the later ones may count.
type producer interface {
	Send(topic string, partition int32, key, value []byte, headers []codecs.Header, done func(offset int64, err error))
}

// store is the local copy of one table partition.
type store interface {
	// Get returns the record value of a key, nil when absent. The slice belongs to the caller.
	Get(key string) ([]byte, error)
	// Write applies rows (nil value = delete) and moves the mark, in one batch.
	Write(rows []row, at storeMark) error
	// At is the mark of the last Write.
	At() storeMark
	// Each calls fn for every row in the order of the keys' bytes. The slices are fn's only during the call.
	Each(fn func(key, value []byte) error) error
	// Discard empties the store.
	Discard() error
}

// storeMark is how far a store follows its changelog.
type storeMark struct {
	Next    int64     // changelog offset to read next
	Claim   uint64    // newest claim before Next
	Written time.Time // when; zero = never
}

// row is a record of the table to write: nil value = delete.
type row struct {
	key   string
	value []byte
}

// logs reads topics.
type logs interface {
	// Start and End return the first offset of a partition and the one behind its last record.
	Start(ctx context.Context, topic string, partition int32) (int64, error)
	End(ctx context.Context, topic string, partition int32) (int64, error)
	// Read calls fn for the records with from <= offset < to that are still there, control records included (as records
	// without key and value).
	Read(ctx context.Context, topic string, partition int32, from, to int64, fn func(*codecs.Record) error) error
}

// env is what all partitions of a processor share.
type env struct {
	machine    Machine
	prefix     string
	group      string // consumer group
	source     string // ce_source
	owner      string // shown in claim records
	input      string // topic
	table      string // topic
	topicID    codecs.TopicID
	partitions int32 // of the input
	hasStatus  bool  // the status topic exists

	out        producer
	logs       logs
	log        *slog.Logger
	m          *metrics
	timing     Timing
	cacheBytes int
	now        func() time.Time
	hook       func(point string, partition int32)
	faults     *faults
	faultOf    func(partition int32, err error)
	off        rules
}

// Points of a cut at which Config.Hook is called, in this order.
const (
	PointClaimed     = "claimed"      // the claim record is acknowledged
	PointRecovered   = "recovered"    // the local copy is complete
	PointClosed      = "closed"       // the cut is closed and encoded
	PointRowsSent    = "rows-sent"    // all rows are handed to the producer
	PointRowsAcked   = "rows-acked"   // all rows are in the changelog
	PointGapHandled  = "gap-handled"  // what strangers wrote is repaired
	PointStored      = "stored"       // the local copy has the rows
	PointOutputsSent = "outputs-sent" // all outputs are handed to the producer
	PointOutputsDone = "outputs-done" // all outputs are acknowledged
	PointMarked      = "marked"       // the offset may be committed
)

// Errors that end a partition's ownership. The processor joins again and recovers, but for ErrRefused.
var (
	// ErrZombie: another instance claimed the partition.
	ErrZombie = errors.New("another instance has claimed the partition")
	// ErrRefused: the data does not fit together; an operator has to decide.
	ErrRefused = errors.New("partition refused")

	errStopped   = errors.New("partition stopped")
	errStep      = errors.New("machine failed")
	errCompacted = errors.New("records of strangers are compacted away")
	errAdopted   = errors.New("input topic adopted")
)

// faults remembers, over rebuilds of a partition, which input made the machine fail.
type faults struct {
	mu    sync.Mutex
	at    map[faultKey]string           // reason by input
	watch map[int32]map[string]struct{} // rows to encode after every event, by partition
}

type faultKey struct {
	partition int32
	offset    int64
}

func newFaults() *faults {
	return &faults{at: map[faultKey]string{}, watch: map[int32]map[string]struct{}{}}
}

func (f *faults) add(partition int32, offset int64, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at[faultKey{partition, offset}] = reason
}

// of returns the reason why an input made the machine fail.
func (f *faults) of(partition int32) map[int64]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := map[int64]string{}
	for k, reason := range f.at {
		if k.partition == partition {
			m[k.offset] = reason
		}
	}
	return m
}

// suspect makes the next owner check a row's size after every event.
func (f *faults) suspect(partition int32, key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watch[partition] == nil {
		f.watch[partition] = map[string]struct{}{}
	}
	f.watch[partition][key] = struct{}{}
}

func (f *faults) suspects(partition int32) map[string]struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := map[string]struct{}{}
	for k := range f.watch[partition] {
		m[k] = struct{}{}
	}
	return m
}
