package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// IntoConfig says where records go.
type IntoConfig struct {
	// Source gives the records. Required.
	Source Source
	// Client are the options of the target's Kafka client: seed brokers, TLS, SASL. Required.
	Client []kgo.Opt
	// Topic is the whole name of the target topic. It must exist, and must not be the source. Required.
	Topic string
	// Local says that the target's machine takes records where they are: those on a wrong partition have no moved copies.
	// Default: they have.
	Local bool
	// Progress, if not nil, is called after each record of the source.
	Progress func(records int64)
}

// Validate reports what is missing.
func (c IntoConfig) Validate() error {
	var errs []error
	if c.Source == nil {
		errs = append(errs, errors.New("no source"))
	}
	if len(c.Client) == 0 {
		errs = append(errs, errors.New("no options of a Kafka client"))
	}
	if c.Topic == "" {
		errs = append(errs, errors.New("no topic"))
	}
	return errors.Join(errs...)
}

// Copied counts what Into did.
type Copied struct {
	Sent      int64 `json:"sent"`
	Nudges    int64 `json:"nudges"`    // left out: the target makes its own
	Misplaced int64 `json:"misplaced"` // left out: their moved copies were sent
}

// Into sends the records of a source to another topic, each to the partition of its key there. Records of one key keep
// their order. It returns when all are acknowledged by all in-sync replicas.
func Into(ctx context.Context, cfg IntoConfig) (Copied, error) {
	var n Copied
	if err := cfg.Validate(); err != nil {
		return n, fmt.Errorf("replay into %s: %w", cfg.Topic, err)
	}
	target, err := OpenLive(ctx, LiveConfig{Client: cfg.Client, Topic: cfg.Topic})
	if err != nil {
		return n, fmt.Errorf("replay into %s: %w", cfg.Topic, err)
	}
	from := cfg.Source.Topic()
	if from.ID == target.Topic().ID {
		return n, fmt.Errorf("replay into %s: the target is the source", cfg.Topic)
	}
	cl, err := newClient(cfg.Client, kgo.RequiredAcks(kgo.AllISRAcks()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return n, fmt.Errorf("replay into %s: %w", cfg.Topic, err)
	}
	defer cl.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := sender{cl: cl, topic: cfg.Topic, partitions: target.Topic().Partitions, source: from, local: cfg.Local, cancel: cancel, n: &n}
	read := int64(0)
	err = cfg.Source.Each(ctx, func(rec *codecs.Record) error {
		s.take(ctx, rec)
		if read++; cfg.Progress != nil {
			cfg.Progress(read)
		}
		return context.Cause(ctx)
	})
	s.acks.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err != nil {
		return n, fmt.Errorf("replay into %s: %w", cfg.Topic, err)
	}
	return n, nil
}

// sender produces records and waits for their acknowledgements.
type sender struct {
	cl         *kgo.Client
	topic      string
	partitions int32
	source     codecs.RecordedTopic
	local      bool
	cancel     context.CancelCauseFunc
	acks       sync.WaitGroup
	n          *Copied
}

func (s *sender) take(ctx context.Context, rec *codecs.Record) {
	if len(rec.Key) > 0 && !s.local && codecs.Partition(rec.Key, s.source.Partitions) != rec.Partition {
		s.n.Misplaced++
		return
	}
	if typ, _ := rec.Header(codecs.HeaderType); strings.HasSuffix(strings.TrimRight(string(typ), "0123456789"), ".nudge.v") {
		s.n.Nudges++
		return
	}
	out := &kgo.Record{Topic: s.topic, Key: slices.Clone(rec.Key), Value: slices.Clone(rec.Value)}
	if len(rec.Key) > 0 {
		out.Partition = codecs.Partition(rec.Key, s.partitions)
	} else {
		out.Partition = rec.Partition % s.partitions
	}
	for _, h := range rec.Headers {
		if h.Key != codecs.HeaderMoved && h.Key != codecs.HeaderRepaired { // positions in the old log
			out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
	}
	s.n.Sent++
	s.acks.Add(1)
	s.cl.Produce(ctx, out, func(r *kgo.Record, err error) {
		if err != nil {
			s.cancel(fmt.Errorf("source partition %d, offset %d: %w", rec.Partition, rec.Offset, err))
		}
		s.acks.Done()
	})
}
