package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// ended is the completion event of a batch and when it was here.
type ended struct {
	at    time.Time
	event *codecs.BatchEvent
}

// follow reads lifecycle events until the batch has ended.
func follow(ctx context.Context, bootstrap, prefix, batch string) (*ended, error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ConsumeTopics(codecs.Topic(prefix, codecs.TopicEvents)),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, fmt.Errorf("follow batch %s: %w", batch, err)
	}
	defer c.Close()
	for {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return nil, fmt.Errorf("follow batch %s: %w", batch, err)
		}
		for it := fetches.RecordIter(); !it.Done(); {
			k := it.Next()
			ev, err := decode(k)
			if err != nil {
				return nil, fmt.Errorf("follow batch %s: %w", batch, err)
			}
			if data, ok := ev.Data.(*codecs.BatchEvent); ok && ev.Key == batch && strings.HasSuffix(ev.ID, "/terminal") {
				return &ended{at: time.Now(), event: data}, nil
			}
		}
	}
}

// decode makes our event of the client's record.
func decode(k *kgo.Record) (*codecs.Event, error) {
	rec := codecs.Record{Topic: k.Topic, Partition: k.Partition, Offset: k.Offset, Time: k.Timestamp.UnixMilli(), Key: k.Key, Value: k.Value}
	for _, h := range k.Headers {
		rec.Headers = append(rec.Headers, codecs.Header(h))
	}
	ev := &codecs.Event{}
	return ev, codecs.Decode(&rec, ev)
}

// readAll calls fn for every record that a topic has now.
func readAll(ctx context.Context, bootstrap, topic string, fn func(*kgo.Record) error) error {
	c, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return fmt.Errorf("read %s: %w", topic, err)
	}
	defer c.Close()
	ends, err := kadm.NewClient(c).ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", topic, err)
	}
	open := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			open[o.Partition] = o.Offset
		}
	})
	for len(open) > 0 {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return fmt.Errorf("read %s: %w", topic, err)
		}
		for it := fetches.RecordIter(); !it.Done(); {
			k := it.Next()
			if end, ok := open[k.Partition]; ok && k.Offset >= end-1 {
				delete(open, k.Partition)
			}
			if err := fn(k); err != nil {
				return fmt.Errorf("read %s: %w", topic, err)
			}
		}
	}
	return nil
}

// failures reads the reasons of the tasks that failed. They are on their way when the completion event is seen: another
// topic, acked at another moment. So it reads until there is one for each of the number that the event names.
func failures(ctx context.Context, bootstrap, prefix, batch, run string, paths []string, failed int) ([]Failure, error) {
	for {
		found, err := reasons(ctx, bootstrap, prefix, batch, run, paths)
		if err != nil || len(found) >= failed {
			return slices.Collect(maps.Values(found)), err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d reasons are there: %w", len(found), failed, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// reasons reads what the outcomes topic has now, by index.
func reasons(ctx context.Context, bootstrap, prefix, batch, run string, paths []string) (map[uint32]Failure, error) {
	found := map[uint32]Failure{}
	err := readAll(ctx, bootstrap, codecs.Topic(prefix, codecs.TopicOutcomes), func(k *kgo.Record) error {
		if k.Value == nil || !strings.HasPrefix(string(k.Key), batch+"\x00"+run+"\x00") {
			return nil
		}
		ev, err := decode(k)
		if err != nil {
			return err
		}
		o, ok := ev.Data.(*codecs.TaskOutcome)
		if !ok || !codecs.IsFailure(o.Outcome) || int(o.Index) >= len(paths) {
			return nil
		}
		stage, _, _ := strings.Cut(o.Reporter, "@")
		found[o.Index] = Failure{Path: paths[o.Index], Stage: stage, Reason: o.Reason}
		return nil
	})
	return found, err
}
