package repair

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// producer sends records in order and waits for all in-sync replicas.
type producer struct {
	cl    *kgo.Client
	topic string
	acks  sync.WaitGroup
	mu    sync.Mutex
	err   error // the first
}

// newProducer makes batches as large as the topic takes them: what stood in it fits in again.
func newProducer(ctx context.Context, cfg Config, topic string) (*producer, error) {
	limit, err := maxMessage(ctx, cfg, topic)
	if err != nil {
		return nil, err
	}
	opts := []kgo.Opt{kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(limit)}
	cl, err := kgo.NewClient(append(append([]kgo.Opt{}, cfg.Client...), opts...)...)
	if err != nil {
		return nil, err
	}
	return &producer{cl: cl, topic: topic}, nil
}

// maxMessage asks for max.message.bytes of a topic.
func maxMessage(ctx context.Context, cfg Config, topic string) (int32, error) {
	cl, err := kgo.NewClient(cfg.Client...)
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	configs, err := kadm.NewClient(cl).DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return 0, fmt.Errorf("configuration of %s: %w", topic, err)
	}
	c, err := configs.On(topic, nil)
	if err != nil || c.Err != nil {
		return 0, fmt.Errorf("configuration of %s: %w", topic, cmp.Or(err, c.Err))
	}
	for _, k := range c.Configs {
		if n, err := strconv.ParseInt(k.MaybeValue(), 10, 32); k.Key == "max.message.bytes" && err == nil {
			return int32(n), nil
		}
	}
	return 0, fmt.Errorf("configuration of %s: no max.message.bytes", topic)
}

func (p *producer) send(ctx context.Context, rec *codecs.Record) error {
	out := &kgo.Record{Topic: p.topic, Partition: rec.Partition, Key: rec.Key, Value: rec.Value}
	for _, h := range rec.Headers {
		out.Headers = append(out.Headers, kgo.RecordHeader(h))
	}
	p.acks.Add(1)
	p.cl.Produce(ctx, out, func(_ *kgo.Record, err error) {
		defer p.acks.Done()
		p.mu.Lock()
		defer p.mu.Unlock()
		if err != nil && p.err == nil {
			p.err = fmt.Errorf("offset %d: %w", rec.Offset, err)
		}
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// wait returns when everything is acknowledged, with the first error.
func (p *producer) wait() error {
	p.acks.Wait()
	return p.err
}

func (p *producer) close() { p.cl.Close() }
