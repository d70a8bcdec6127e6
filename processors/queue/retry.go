package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/topology"
)

// Retry moves the tasks of a queue's retry tiers back into the queue when they are due. Any number may run at once.
type Retry struct {
	cfg  Config
	cl   *kgo.Client
	tier map[string]time.Duration // by topic

	moves sync.Mutex  // a move and its commit; partitions are not handed over in between
	gone  atomic.Bool // as if killed: nothing is committed any more (tests)

	mu    sync.Mutex
	lines map[line][]*kgo.Record // in due order
}

type line struct {
	topic     string
	partition int32
}

// maxWaiting is how many records of one tier partition are held in memory; the rest stays in the topic.
const maxWaiting = 500

// OpenRetry joins the group that moves a queue's retries.
func OpenRetry(cfg Config) (*Retry, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Retry{cfg: cfg, tier: map[string]time.Duration{}, lines: map[line][]*kgo.Record{}}
	var topics []string
	for _, d := range cfg.Retries {
		t := topology.RetryTopic(cfg.Prefix, cfg.Queue, d)
		r.tier[t] = d
		topics = append(topics, t)
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(cfg.Bootstrap...), kgo.ConsumeTopics(topics...), kgo.ConsumerGroup(cfg.group() + ".retry"),
		kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsRevoked(r.forget), kgo.OnPartitionsLost(r.forget), kgo.ProducerLinger(0), kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.BlockRebalanceOnPoll(),
	}
	cl, err := kgo.NewClient(append(opts, cfg.Options...)...)
	if err != nil {
		return nil, fmt.Errorf("queue %s: retries: %w", cfg.Queue, err)
	}
	r.cl = cl
	return r, nil
}

// Run moves due tasks until ctx is done.
func (r *Retry) Run(ctx context.Context) error {
	defer r.cl.CloseAllowingRebalance()
	if len(r.tier) == 0 {
		<-ctx.Done()
		return nil
	}
	polled := make(chan kgo.Fetches)
	var poll sync.WaitGroup
	defer poll.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	poll.Go(func() {
		for {
			f := r.cl.PollRecords(ctx, 1000)
			select {
			case polled <- f:
			case <-ctx.Done():
				return
			}
		}
	})
	for {
		wait := r.move(ctx)
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case f := <-polled:
			r.add(f)
			r.cl.AllowRebalance() // not before: what was fetched belongs to the assignment that add sees
		case <-t.C:
		}
		t.Stop()
	}
}

// add takes fetched records; a line that is long enough is paused.
func (r *Retry) add(f kgo.Fetches) {
	f.EachError(func(topic string, p int32, err error) {
		if !errors.Is(err, context.Canceled) {
			r.cfg.Logger.Warn("retry fetch failed", "topic", topic, "partition", p, "error", err)
		}
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	f.EachRecord(func(rec *kgo.Record) {
		l := line{rec.Topic, rec.Partition}
		r.lines[l] = append(r.lines[l], rec)
		if len(r.lines[l]) == maxWaiting {
			r.cl.PauseFetchPartitions(map[string][]int32{l.topic: {l.partition}})
		}
	})
}

// move sends what is due, commits it, and returns how long nothing else is.
func (r *Retry) move(ctx context.Context) time.Duration {
	const idle = time.Second
	r.moves.Lock()
	defer r.moves.Unlock()
	r.mu.Lock()
	next := idle
	due := map[line][]*kgo.Record{}
	now := time.Now()
	for l, recs := range r.lines {
		n := 0
		for n < len(recs) && !now.Before(recs[n].Timestamp.Add(r.tier[l.topic])) {
			n++
		}
		if n > 0 {
			due[l] = recs[:n]
		}
		if n < len(recs) {
			next = min(next, recs[n].Timestamp.Add(r.tier[l.topic]).Sub(now))
		}
	}
	r.mu.Unlock()
	var lasts []*kgo.Record
	for l, recs := range due {
		if err := r.back(ctx, recs); err != nil {
			if ctx.Err() == nil {
				r.cfg.Logger.Warn("retries not moved; tried again", "topic", l.topic, "partition", l.partition, "error", err)
			}
			next = min(next, 100*time.Millisecond)
			continue
		}
		r.done(l, recs)
		lasts = append(lasts, recs[len(recs)-1])
	}
	if len(lasts) > 0 && !r.gone.Load() {
		if err := r.cl.CommitRecords(ctx, lasts...); err != nil && ctx.Err() == nil {
			r.cfg.Logger.Warn("moved retries not committed; they may be moved twice", "queue", r.cfg.Queue, "error", err)
		}
	}
	return next
}

// back writes records into the queue as they are: same key, headers and value.
func (r *Retry) back(ctx context.Context, recs []*kgo.Record) error {
	out := make([]*kgo.Record, len(recs))
	for i, rec := range recs {
		out[i] = &kgo.Record{Topic: r.cfg.topic(), Key: rec.Key, Value: rec.Value, Headers: rec.Headers}
	}
	return r.cl.ProduceSync(ctx, out...).FirstErr()
}

func (r *Retry) done(l line, recs []*kgo.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := r.lines[l]
	r.lines[l] = held[len(recs):]
	if len(held) >= maxWaiting && len(r.lines[l]) < maxWaiting {
		r.cl.ResumeFetchPartitions(map[string][]int32{l.topic: {l.partition}})
	}
}

// forget drops what is held of partitions that go to others, after the move that is under way: a commit that came later
// would turn the next owner's back.
func (r *Retry) forget(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
	r.moves.Lock()
	defer r.moves.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for topic, ps := range gone {
		for _, p := range ps {
			delete(r.lines, line{topic, p})
		}
	}
}
