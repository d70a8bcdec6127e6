package feeder

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/topology"
)

// Errors that the caller may want to tell apart.
var (
	// ErrInputChanged means that the input is not the one that the checkpoint is about.
	ErrInputChanged = errors.New("the input is not the one that was fed before")
	// ErrCheckpoint means that the checkpoint file belongs to something else.
	ErrCheckpoint = errors.New("the checkpoint is of another feeding; remove it to start anew")
	errOrder      = errors.New("Start, then Send, then Seal")
)

// Feeder feeds one batch. Start, any number of Send, Seal; Close at the end in any case. Safe for concurrent use, but
// the order of Send is the order of the indexes: a resumed feeding must be given the same records in the same order.
type Feeder struct {
	cfg     Config
	client  *kgo.Client
	encoder codecs.Encoder

	mu     sync.Mutex
	state  state
	file   checkpoint // as on disk
	plan   codecs.Plan
	tag    codecs.Tag // of the next record, without the index
	next   uint32     // index of the next record
	rolled digest     // over the records below next
	resume uint32     // records below were acked by an earlier process
	proof  digest     // over these
	acks   *acks

	stop    chan struct{} // ends saving
	done    chan struct{}
	bad     error // of saving
	closing sync.Once
}

type state int

const (
	made state = iota
	started
	sealed
	closed
)

// New makes a feeder. It connects when it is started.
func New(cfg Config) (*Feeder, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	f := &Feeder{cfg: cfg, encoder: codecs.Encoder{Source: codecs.Source(cfg.Prefix, cfg.ClientID)},
		stop: make(chan struct{}), done: make(chan struct{})}
	opts := append([]kgo.Opt{
		kgo.SeedBrokers(strings.Split(cfg.Bootstrap, ",")...),
		kgo.ClientID(cfg.ClientID),
		kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(func(string) func(*kgo.Record, int) int {
			return func(r *kgo.Record, n int) int {
				if r.Partition >= 0 {
					return int(r.Partition)
				}
				return int(codecs.Partition(r.Key, int32(n)))
			}
		})),
		kgo.ProducerLinger(2 * time.Millisecond),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.AllowIdempotentProduceCancellation(), // sends are cancelled only when the feeder is given up
	}, cfg.Options...)
	var err error
	if f.client, err = kgo.NewClient(opts...); err != nil {
		return nil, f.failed("client", err)
	}
	return f, nil
}

func (f *Feeder) failed(what string, err error) error {
	return fmt.Errorf("feeder of batch %s: %s: %w", f.cfg.Batch, what, err)
}

// Start sends START, or takes an earlier process's feeding up where the checkpoint says. It returns when START is acked.
func (f *Feeder) Start(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state != made {
		return f.failed("start", errOrder)
	}
	if err := f.load(); err != nil {
		return f.failed("start", err)
	}
	start, err := f.begin(ctx)
	if err != nil {
		return f.failed("start", err)
	}
	if err := f.save(); err != nil {
		return f.failed("start", err)
	}
	if err := f.control(ctx, codecs.TypeBatchStart, start); err != nil {
		return f.failed("start", err)
	}
	f.acks = newAcks(f.resume, f.proof)
	f.state = started
	go f.saveEvery()
	return nil
}

// load reads the checkpoint, or makes the first one.
func (f *Feeder) load() error {
	c := f.cfg
	f.file = checkpoint{Version: 1, Batch: c.Batch, Run: c.Run, Mode: c.Mode, Feeder: c.Feeder, Digest: digest{}.String(),
		Topology: fmt.Sprintf("%s@%d", c.Topology.Name, c.Topology.Version)}
	if c.Checkpoint != "" {
		old, err := readCheckpoint(c.Checkpoint)
		if err != nil {
			return err
		}
		if old != nil {
			if err := old.fits(c.Checkpoint, &f.file); err != nil {
				return err
			}
			f.file = *old
		}
	}
	if f.file.Run == "" {
		f.file.Run = ulid.Make().String()
	}
	f.resume = f.file.Acked
	var err error
	f.proof, err = parseDigest(f.file.Digest)
	return err
}

// begin freezes the partition counts and makes START.
func (f *Feeder) begin(ctx context.Context) (*codecs.BatchStart, error) {
	counts, err := f.counts(ctx)
	if err != nil {
		return nil, err
	}
	c := f.cfg
	start, err := c.Topology.Start(c.Mode, func(topic string) (int32, error) { return counts[topic], nil })
	if err != nil {
		return nil, err
	}
	f.plan = codecs.Plan{Mode: c.Mode, Topology: c.Topology.Name, Version: c.Topology.Version, Feeders: c.Feeders, Partitions: counts}
	f.file.Plan = f.plan.String()
	f.tag = codecs.Tag{Batch: c.Batch, Run: f.file.Run, Feeder: c.Feeder}
	if c.Mode != topology.ModeLedger {
		f.tag.Plan = f.file.Plan
	}
	return f.startEvent(start), nil
}

// startEvent completes START with what the caller gave.
func (f *Feeder) startEvent(from *codecs.BatchStart) *codecs.BatchStart {
	start := &codecs.BatchStart{}
	if f.cfg.Start != nil {
		start = proto.Clone(f.cfg.Start).(*codecs.BatchStart)
	}
	start.Run, start.Mode, start.Feeders = f.file.Run, from.Mode, f.cfg.Feeders
	start.Topology, start.Units, start.Legs = from.Topology, from.Units, from.Legs
	return start
}

// Run is the run id, known after Start.
func (f *Feeder) Run() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Run
}

// Resumed is the number of records that an earlier process has fed: the same ones are expected first.
func (f *Feeder) Resumed() uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.resume
}

// Acked is the number of records, from the first on, that are known to be in the topic.
func (f *Feeder) Acked() uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.acks == nil {
		return 0
	}
	n, _, _ := f.acks.prefix()
	return n
}

// Send feeds the next record and returns its index. It returns before the record is acked; an error of an earlier
// record comes back from a later call or from Seal, and ends the feeding. Records that an earlier process has fed are
// not sent again. The record must not be changed until Seal returns.
func (f *Feeder) Send(ctx context.Context, key, value []byte, headers ...codecs.Header) (uint32, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state != started {
		return 0, f.failed("send", errOrder)
	}
	if err := f.check(headers); err != nil {
		return 0, f.failed(fmt.Sprintf("record %d", f.next), err)
	}
	index := f.next
	f.rolled = f.rolled.next(key, value)
	f.next++
	if index < f.resume {
		if f.next == f.resume && f.rolled != f.proof {
			return index, f.failed(fmt.Sprintf("the first %d records", f.resume), ErrInputChanged)
		}
		return index, nil
	}
	f.acks.sent(f.rolled)
	f.client.Produce(ctx, f.record(index, key, value, headers), func(_ *kgo.Record, err error) { f.acks.acked(index, err) })
	return index, nil
}

// check says whether another record can be sent.
func (f *Feeder) check(headers []codecs.Header) error {
	if _, _, err := f.acks.prefix(); err != nil {
		return err
	}
	if f.bad != nil {
		return f.bad
	}
	if f.next == math.MaxUint32 || f.file.Sealed && f.next >= f.resume {
		return fmt.Errorf("one more than the %d that were sealed: %w", f.resume, ErrInputChanged)
	}
	for _, h := range headers {
		if codecs.IsTag(h.Key) {
			return fmt.Errorf("header %s is the feeder's", h.Key)
		}
	}
	return nil
}

// record makes the record of an index. Its partition depends on the key and the frozen count alone.
func (f *Feeder) record(index uint32, key, value []byte, headers []codecs.Header) *kgo.Record {
	n := f.plan.Partitions[f.cfg.Topology.Source]
	r := &kgo.Record{Topic: f.cfg.Topology.Source, Key: key, Value: value, Partition: int32(index % uint32(n))}
	if key != nil {
		r.Partition = codecs.Partition(key, n)
	}
	tag := f.tag
	tag.Index = index
	for _, h := range codecs.AppendTag(make([]codecs.Header, 0, 5+len(headers)), &tag) {
		r.Headers = append(r.Headers, kgo.RecordHeader(h))
	}
	for _, h := range headers {
		r.Headers = append(r.Headers, kgo.RecordHeader(h))
	}
	return r
}
