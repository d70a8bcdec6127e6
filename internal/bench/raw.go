package bench

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// raw reads the control topic and looks at nothing.
func raw(ctx context.Context, f *field) (measure, error) {
	var watch stopwatch
	left := f.records
	err := f.consume(ctx, func(*kgo.Record) (bool, error) {
		watch.first()
		left--
		return left == 0, nil
	})
	if err != nil {
		return measure{}, fmt.Errorf("raw consumer: %w", err)
	}
	return watch.stop(), nil
}

// consume reads the control topic from its start, without a group, until handle says that it has seen enough.
func (f *field) consume(ctx context.Context, handle func(*kgo.Record) (bool, error)) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(f.bootstrap), kgo.ConsumeTopics(f.topic(codecs.TopicControl)),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxBytes(16<<20), kgo.FetchMaxPartitionBytes(4<<20))
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return err
		}
		for it := fetches.RecordIter(); !it.Done(); {
			if done, err := handle(it.Next()); done || err != nil {
				return err
			}
		}
	}
}
