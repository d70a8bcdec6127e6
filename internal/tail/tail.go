package tail

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// Config names a deployment. Bootstrap is required.
type Config struct {
	Bootstrap []string
	Prefix    string    // Default: that of package codecs
	Options   []kgo.Opt // more options of the clients (TLS, SASL)
}

// client reads a topic, named without its prefix, from the start.
func (c Config) client(topic string) (*kgo.Client, string, error) {
	if c.Prefix == "" {
		c.Prefix = codecs.DefaultPrefix
	}
	name := codecs.Topic(c.Prefix, topic)
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.Bootstrap...), kgo.ConsumeTopics(name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}, c.Options...)...)
	return cl, name, err
}

// Follow calls fn for every event of a topic from its start, until fn says that it is done.
func Follow(ctx context.Context, cfg Config, topic string, fn func(*codecs.Event) (done bool, err error)) error {
	c, name, err := cfg.client(topic)
	if err != nil {
		return fmt.Errorf("follow %s: %w", topic, err)
	}
	defer c.Close()
	for {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return fmt.Errorf("follow %s: %w", name, err)
		}
		for it := fetches.RecordIter(); !it.Done(); {
			ev, err := Decode(it.Next())
			done := false
			if err == nil {
				done, err = fn(ev)
			}
			if err != nil {
				return fmt.Errorf("follow %s: %w", name, err)
			}
			if done {
				return nil
			}
		}
	}
}

// Read calls fn for every record that a topic has now.
func Read(ctx context.Context, cfg Config, topic string, fn func(*kgo.Record) error) error {
	c, name, err := cfg.client(topic)
	if err != nil {
		return fmt.Errorf("read %s: %w", topic, err)
	}
	defer c.Close()
	open, err := ends(ctx, c, name)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	for len(open) > 0 {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		for it := fetches.RecordIter(); !it.Done(); {
			k := it.Next()
			if end, ok := open[k.Partition]; ok && k.Offset >= end-1 {
				delete(open, k.Partition)
			}
			if err := fn(k); err != nil {
				return fmt.Errorf("read %s: %w", name, err)
			}
		}
	}
	return nil
}

// ends returns the end of each partition that has records.
func ends(ctx context.Context, c *kgo.Client, topic string) (map[int32]int64, error) {
	adm := kadm.NewClient(c)
	starts, err := adm.ListStartOffsets(ctx, topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, err
	}
	ends, err := adm.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, err
	}
	open := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if s, ok := starts.Lookup(topic, o.Partition); ok && o.Offset > s.Offset {
			open[o.Partition] = o.Offset
		}
	})
	return open, nil
}

// Decode makes our event of the client's record.
func Decode(k *kgo.Record) (*codecs.Event, error) {
	rec := codecs.Record{Topic: k.Topic, Partition: k.Partition, Offset: k.Offset, Time: k.Timestamp.UnixMilli(), Key: k.Key, Value: k.Value}
	for _, h := range k.Headers {
		rec.Headers = append(rec.Headers, codecs.Header(h))
	}
	ev := &codecs.Event{}
	return ev, codecs.Decode(&rec, ev)
}
