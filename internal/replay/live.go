package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// LiveConfig names a topic on brokers.
type LiveConfig struct {
	// Client are the options of the Kafka client: seed brokers, TLS, SASL. Required.
	Client []kgo.Opt
	// Topic is its whole name. Required.
	Topic string
	// Stall bounds how long a partition may give nothing before its end. Default 60 s.
	Stall time.Duration
}

// WithDefaults returns the configuration with absent fields filled in.
func (c LiveConfig) WithDefaults() LiveConfig {
	if c.Stall == 0 {
		c.Stall = time.Minute
	}
	return c
}

// Validate reports what is missing.
func (c LiveConfig) Validate() error {
	var errs []error
	if len(c.Client) == 0 {
		errs = append(errs, errors.New("no options of a Kafka client"))
	}
	if c.Topic == "" {
		errs = append(errs, errors.New("no topic"))
	}
	if c.Stall < 0 {
		errs = append(errs, fmt.Errorf("stall %s: negative", c.Stall))
	}
	return errors.Join(errs...)
}

// Live is a topic on brokers, between the offsets that it had when it was opened.
type Live struct {
	cfg    LiveConfig
	head   codecs.RecordedTopic
	starts []int64 // by partition
	ends   []int64
}

var _ Source = (*Live)(nil)

// OpenLive looks the topic up and notes where its partitions start and end now.
func OpenLive(ctx context.Context, cfg LiveConfig) (*Live, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open topic: %w", err)
	}
	cl, err := newClient(cfg.Client)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	fail := func(what string, err error) error { return fmt.Errorf("%s of topic %s: %w", what, cfg.Topic, err) }
	details, err := admin.ListTopics(ctx, cfg.Topic)
	if err != nil {
		return nil, fail("description", err)
	}
	d := details[cfg.Topic]
	if d.Err != nil {
		return nil, fail("description", d.Err)
	}
	l := &Live{cfg: cfg, head: codecs.RecordedTopic{Topic: cfg.Topic, ID: codecs.TopicID(d.ID), Partitions: int32(len(d.Partitions))}}
	starts, err := admin.ListStartOffsets(ctx, cfg.Topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, fail("first offsets", err)
	}
	ends, err := admin.ListEndOffsets(ctx, cfg.Topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fail("end offsets", err)
	}
	for p := range l.head.Partitions {
		s, ok1 := starts.Lookup(cfg.Topic, p)
		e, ok2 := ends.Lookup(cfg.Topic, p)
		if !ok1 || !ok2 {
			return nil, fail("offsets", fmt.Errorf("none for partition %d", p))
		}
		l.starts, l.ends = append(l.starts, s.Offset), append(l.ends, e.Offset)
	}
	return l, nil
}

func newClient(base []kgo.Opt, more ...kgo.Opt) (*kgo.Client, error) {
	cl, err := kgo.NewClient(append(slices.Clone(base), more...)...)
	if err != nil {
		return nil, fmt.Errorf("client of Kafka: %w", err)
	}
	return cl, nil
}

// Topic says which topic it is.
func (l *Live) Topic() codecs.RecordedTopic { return l.head }

// Bounds returns the first offset and the end of a partition, as they were when the topic was opened.
func (l *Live) Bounds(partition int32) (start, end int64) {
	return l.starts[partition], l.ends[partition]
}

// Len is the number of offsets between starts and ends.
func (l *Live) Len() int64 {
	n := int64(0)
	for p := range l.starts {
		n += l.ends[p] - l.starts[p]
	}
	return n
}

// Upto returns the same topic with earlier ends; -1 keeps one.
func (l *Live) Upto(ends []int64) *Live {
	cut := *l
	cut.ends = append([]int64(nil), l.ends...)
	for p, e := range ends {
		if e >= 0 {
			cut.ends[p] = min(e, l.ends[p])
		}
	}
	return &cut
}

// Only returns the same topic with nothing in the other partitions.
func (l *Live) Only(partition int32) *Live {
	cut := *l
	cut.ends = append([]int64(nil), l.starts...)
	cut.ends[partition] = l.ends[partition]
	return &cut
}

// From returns the same topic with a later start of a partition.
func (l *Live) From(partition int32, offset int64) *Live {
	cut := *l
	cut.starts = append([]int64(nil), l.starts...)
	cut.starts[partition] = max(offset, l.starts[partition])
	return &cut
}

// Each reads partition after partition.
func (l *Live) Each(ctx context.Context, fn func(*codecs.Record) error) error {
	cl, err := newClient(l.cfg.Client, kgo.KeepControlRecords())
	if err != nil {
		return err
	}
	defer cl.Close()
	for p := range l.head.Partitions {
		if l.starts[p] >= l.ends[p] {
			continue
		}
		if err := l.partition(ctx, cl, p, fn); err != nil {
			return fmt.Errorf("topic %s, partition %d: %w", l.head.Topic, p, err)
		}
	}
	return nil
}

func (l *Live) partition(ctx context.Context, cl *kgo.Client, p int32, fn func(*codecs.Record) error) error {
	at := kgo.NewOffset().At(l.starts[p])
	cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{l.head.Topic: {p: at}})
	defer cl.RemoveConsumePartitions(map[string][]int32{l.head.Topic: {p}})
	for next := l.starts[p]; next < l.ends[p]; {
		poll, cancel := context.WithTimeout(ctx, l.cfg.Stall)
		fetches := cl.PollFetches(poll)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := fetches.Err(); errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("nothing for %s at offset %d of %d", l.cfg.Stall, next, l.ends[p])
		} else if err != nil {
			return err
		}
		for _, r := range fetches.Records() {
			if r.Partition != p || r.Offset < next {
				continue
			}
			next = r.Offset + 1
			if r.Offset >= l.ends[p] || r.Attrs.IsControl() {
				continue
			}
			if err := fn(recordOf(r)); err != nil {
				return fmt.Errorf("offset %d: %w", r.Offset, err)
			}
		}
	}
	return nil
}

func recordOf(r *kgo.Record) *codecs.Record {
	rec := &codecs.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		rec.Headers = append(rec.Headers, codecs.Header{Key: h.Key, Value: h.Value})
	}
	return rec
}
