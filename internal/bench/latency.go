package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/batch"
)

// warmUp is the number of batches that are not measured: connections are made, code is paged in.
const warmUp = 20

// latency completes batches one after the other and takes the time from handing the last completion to the producer to
// having the completion event.
func latency(ctx context.Context, f *field, r *Result) error {
	begin := now()
	var took []time.Duration
	err := f.controller(ctx, batch.New(batch.Config{}), func(ctx context.Context) error {
		p, err := newProbe(f)
		if err != nil {
			return err
		}
		defer p.client.Close()
		for i := range f.cfg.Batches + warmUp {
			size := f.cfg.N / f.cfg.Batches
			d, err := p.batch(ctx, batchID(i), max(size, 1))
			if err != nil {
				return fmt.Errorf("batch %d: %w", i, err)
			}
			if i >= warmUp {
				took = append(took, d)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.K, r.Active = 1, 1
	r.P50ms, r.P99ms, r.MaxMs = quantile(took, 0.5), quantile(took, 0.99), quantile(took, 1)
	r.Seconds = round(time.Since(begin.at).Seconds())
	r.ForeignCPUPercent, r.RSSMiB = begin.foreign(), rss()
	return nil
}

// probe is a feeder, reporter and listener in one.
type probe struct {
	f      *field
	client *kgo.Client
}

func newProbe(f *field) (*probe, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(f.bootstrap), kgo.ProducerLinger(0), kgo.ConsumeTopics(f.topic(codecs.TopicEvents)),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(5*time.Second))
	if err != nil {
		return nil, err
	}
	return &probe{f, client}, nil
}

// batch runs one batch of n tasks and returns the delay between its last completion and its completion event.
func (p *probe) batch(ctx context.Context, id string, n int) (time.Duration, error) {
	var recs []*kgo.Record
	l := &load{emit: func(key string, ev *codecs.Event) error {
		rec, err := codecs.Encode(p.f.topic(codecs.TopicControl), key, codecs.Source(p.f.prefix, "bench"), ev)
		recs = append(recs, wire(&rec))
		return err
	}}
	l.cfg = Config{N: n, Batches: 1}
	if err := l.begin(0); err != nil {
		return 0, err
	}
	for i := range n {
		if err := l.report(0, []uint32{uint32(i)}); err != nil {
			return 0, err
		}
	}
	for _, r := range recs {
		r.Key = []byte(id)
		for i := range r.Headers {
			if r.Headers[i].Key == codecs.HeaderSubject {
				r.Headers[i].Value = r.Key
			}
		}
	}
	last := len(recs) - 1
	if err := p.client.ProduceSync(ctx, recs[:last]...).FirstErr(); err != nil {
		return 0, err
	}
	if err := p.awaitBatch(ctx, id, func(r *kgo.Record) bool { return eventType(r) == codecs.TypeBatchSealed }); err != nil {
		return 0, err
	}
	begin := time.Now()
	p.client.Produce(ctx, recs[last], nil)
	err := p.awaitBatch(ctx, id, func(r *kgo.Record) bool { return terminal(eventID(r)) })
	return time.Since(begin), err
}

// awaitBatch reads events until the wanted one of the batch.
func (p *probe) awaitBatch(ctx context.Context, id string, want func(*kgo.Record) bool) error {
	return p.await(ctx, func(r *kgo.Record) bool { return string(r.Key) == id && want(r) })
}

// await reads events until the wanted one.
func (p *probe) await(ctx context.Context, want func(*kgo.Record) bool) error {
	for {
		fetches := p.client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return err
		}
		found := false
		fetches.EachRecord(func(r *kgo.Record) {
			found = found || want(r)
		})
		if found {
			return nil
		}
	}
}
