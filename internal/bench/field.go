package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// field is what all contenders of a scenario read: a deployment's topics with the input already in them.
type field struct {
	cfg       Config
	bootstrap string
	prefix    string
	records   int // in the control topic
}

func (f *field) topic(name string) string { return codecs.Topic(f.prefix, name) }

// preload writes the scenario's records to the control topic.
func (f *field) preload(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(f.bootstrap), kgo.ProducerBatchMaxBytes(1<<20), kgo.MaxBufferedRecords(100_000),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return fmt.Errorf("preload: %w", err)
	}
	defer client.Close()
	var mu sync.Mutex
	var failed error
	l := &load{cfg: f.cfg, rng: rand.New(rand.NewPCG(f.cfg.Seed, 0)), emit: func(key string, ev *codecs.Event) error {
		rec, err := codecs.Encode(f.topic(codecs.TopicControl), key, "/quiesce/"+f.prefix+"/bench", ev)
		if err != nil {
			return err
		}
		client.Produce(ctx, wire(&rec), func(_ *kgo.Record, err error) {
			if err != nil {
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		})
		return ctx.Err()
	}}
	if err := l.run(); err != nil {
		return fmt.Errorf("preload: %w", err)
	}
	if err := client.Flush(ctx); err != nil {
		return fmt.Errorf("preload: %w", err)
	}
	f.records = l.count
	mu.Lock()
	defer mu.Unlock()
	if failed != nil {
		return fmt.Errorf("preload: %w", failed)
	}
	return nil
}

// wire makes the client's record of ours.
func wire(r *codecs.Record) *kgo.Record {
	k := &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Headers: make([]kgo.RecordHeader, len(r.Headers))}
	for i, h := range r.Headers {
		k.Headers[i] = kgo.RecordHeader{Key: h.Key, Value: h.Value}
	}
	return k
}

// ours makes our record of the client's. It shares memory.
func ours(k *kgo.Record, r *codecs.Record) {
	headers := r.Headers[:0]
	for _, h := range k.Headers {
		headers = append(headers, codecs.Header{Key: h.Key, Value: h.Value})
	}
	*r = codecs.Record{Topic: k.Topic, Partition: k.Partition, Offset: k.Offset, Time: k.Timestamp.UnixMilli(), Key: k.Key, Value: k.Value, Headers: headers}
}
