package bench

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"math"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/RoaringBitmap/roaring/v2"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/codec"
	"github.com/lovoo/goka/storage"
	"golang.org/x/sync/errgroup"

	"github.com/quiesce/quiesce/codecs"
)

const plainGroup = "plain"

// plain is what one would write with goka alone: a set of ids per batch, read and written for every record, an event
// emitted when it is full. Its topics exist already; the events go to <prefix>.plain-events.
func plain(ctx context.Context, f *field) (measure, error) {
	var watch stopwatch
	dir, err := os.MkdirTemp("", "quiesce-bench")
	if err != nil {
		return measure{}, fmt.Errorf("plain goka: %w", err)
	}
	defer os.RemoveAll(dir)
	events := goka.Stream(f.topic(plainGroup + "-events"))
	graph := goka.DefineGroup(goka.Group(f.topic(plainGroup)),
		goka.Input(goka.Stream(f.topic(codecs.TopicControl)), new(codec.Bytes), func(gctx goka.Context, msg any) {
			watch.first()
			aggregate(gctx, msg, events)
		}),
		goka.Output(events, new(codec.Bytes)),
		goka.Persist(setCodec{}))
	p, err := goka.NewProcessor([]string{f.bootstrap}, graph,
		goka.WithHasher(newHasher),
		goka.WithStorageBuilder(storage.DefaultBuilder(dir)),
		goka.WithConsumerGroupBuilder(goka.ConsumerGroupBuilderWithConfig(tuned())),
		goka.WithConsumerSaramaBuilder(goka.SaramaConsumerBuilderWithConfig(tuned())),
		goka.WithProducerBuilder(goka.ProducerBuilderWithConfig(tuned())),
		goka.WithTopicManagerBuilder(goka.TopicManagerBuilderWithConfig(tuned(), goka.NewTopicManagerConfig())),
		goka.WithLogger(silent{}))
	if err != nil {
		return measure{}, fmt.Errorf("plain goka: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var m measure
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := p.Run(gctx); err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		defer cancel()
		if err := awaitResults(gctx, f.bootstrap, string(events), f.cfg.Batches); err != nil {
			return err
		}
		m = watch.stop()
		return nil
	})
	if err := group.Wait(); err != nil {
		return measure{}, fmt.Errorf("plain goka: %w", err)
	}
	return m, nil
}

// tuned is sarama as one would set it for safety and throughput. goka changes it: a new one each.
func tuned() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.V2_8_0_0
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Return.Errors = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Idempotent = true
	c.Net.MaxOpenRequests = 1
	c.Producer.Return.Successes = true
	c.Producer.Return.Errors = true
	c.Producer.Flush.Frequency = 5 * time.Millisecond
	c.Producer.Flush.Bytes = 1 << 20
	return c
}

// set is the state of a batch: which tasks are done, and how many there are (-1 = not known).
type set struct {
	total int64
	done  *roaring.Bitmap
}

func aggregate(ctx goka.Context, msg any, events goka.Stream) {
	rec := codecs.Record{Key: []byte(ctx.Key()), Value: msg.([]byte)}
	for k, v := range ctx.Headers() {
		rec.Headers = append(rec.Headers, codecs.Header{Key: k, Value: v})
	}
	var ev codecs.Event
	if err := codecs.Decode(&rec, &ev); err != nil {
		ctx.Fail(err)
	}
	s, ok := ctx.Value().(*set)
	if !ok {
		s = &set{total: -1, done: roaring.New()}
	}
	before := s.complete()
	switch d := ev.Data.(type) {
	case *codecs.BatchSeal:
		s.total = int64(d.Total)
	case *codecs.BatchReport:
		for _, item := range d.Items {
			if item.Bitmap == nil {
				s.done.Add(item.First)
				continue
			}
			b := roaring.New()
			if _, err := b.FromBuffer(item.Bitmap); err != nil {
				ctx.Fail(err)
			}
			s.done.Or(b)
		}
	}
	ctx.SetValue(s)
	if s.complete() && !before {
		ctx.Emit(events, ctx.Key(), []byte("done"), goka.WithCtxEmitHeaders(goka.Headers{codecs.HeaderID: []byte(codecs.TerminalID(ctx.Key(), "r", 1))}))
	}
}

func (s *set) complete() bool { return s.total >= 0 && int64(s.done.GetCardinality()) >= s.total }

// setCodec keeps a set as its total (8 bytes) and a roaring bitmap.
type setCodec struct{}

func (setCodec) Encode(v any) ([]byte, error) {
	s := v.(*set)
	b, err := s.done.ToBytes()
	if err != nil {
		return nil, err
	}
	out := make([]byte, 8, 8+len(b))
	for i := range 8 {
		out[i] = byte(uint64(s.total) >> (8 * i))
	}
	return append(out, b...), nil
}

func (setCodec) Decode(b []byte) (any, error) {
	if len(b) < 8 {
		return nil, errors.New("a set has at least 8 bytes")
	}
	s := &set{done: roaring.New()}
	for i := range 8 {
		s.total |= int64(b[i]) << (8 * i)
	}
	return s, s.done.UnmarshalBinary(b[8:])
}

// hasher places keys as our topics do.
type hasher struct{ b []byte }

func newHasher() hash.Hash32 { return &hasher{} }

func (h *hasher) Write(b []byte) (int, error) { h.b = append(h.b, b...); return len(b), nil }
func (h *hasher) Sum(b []byte) []byte         { return b }
func (h *hasher) Reset()                      { h.b = h.b[:0] }
func (h *hasher) Size() int                   { return 4 }
func (h *hasher) BlockSize() int              { return 1 }
func (h *hasher) Sum32() uint32               { return uint32(codecs.Partition(h.b, math.MaxInt32)) }

type silent struct{}

func (silent) Print(...any)          {}
func (silent) Println(...any)        {}
func (silent) Printf(string, ...any) {}
