package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/batch"
)

// BesideFigures are those of one scenario alone: latencies of small batches, in ms, as in p50_ms and p99_ms. Those two are
// of the ones on other partitions than the hot batch, while it is fed.
type BesideFigures struct {
	HotPerS    float64 `json:"hot_completions_per_s"` // the hot batch alone, preloaded
	FedPerS    float64 `json:"fed_completions_per_s"` // while small ones ran
	AloneP50ms float64 `json:"alone_p50_ms"`
	AloneP99ms float64 `json:"alone_p99_ms"`
	SameP50ms  float64 `json:"same_partition_p50_ms"`
	SameP99ms  float64 `json:"same_partition_p99_ms"`

	// From the first record that a new controller handled to the end of a small batch, when a whole hot batch stood in the
	// log before.
	BacklogOtherMs float64 `json:"backlog_other_ms"`
	BacklogSameMs  float64 `json:"backlog_same_ms"`
}

// smallTasks is the number of tasks of a small batch.
const smallTasks = 10

// beside measures small batches alone, beside a hot batch that is fed at half the rate that one reached just before, and
// behind one that stands in the log.
func beside(ctx context.Context, f *field, r *Result) error {
	r.BesideFigures = &BesideFigures{}
	begin := now()
	hot := f.hotIDs()
	if _, err := f.feed(ctx, hot[0], 0); err != nil {
		return fmt.Errorf("preload: %w", err)
	}
	s, err := f.newSmalls()
	if err != nil {
		return err
	}
	defer s.close()
	var watch stopwatch
	if err := f.controller(ctx, timed{batch.New(batch.Config{}), &watch}, func(ctx context.Context) error {
		if err := s.ended(ctx, hot[0]); err != nil {
			return err
		}
		r.HotPerS = round(float64(f.cfg.N) / watch.stop().seconds)
		return f.measureBeside(ctx, s, hot[1], r)
	}); err != nil {
		return err
	}
	err = f.measureBacklog(ctx, s, hot[2], r)
	r.Seconds, r.ForeignCPUPercent, r.RSSMiB = round(time.Since(begin.at).Seconds()), begin.foreign(), rss()
	return err
}

func (f *field) measureBeside(ctx context.Context, s *smalls, hot string, r *Result) error {
	rate := r.HotPerS / 2
	took := time.Duration(float64(f.cfg.N) / rate * float64(time.Second))
	alone, err := s.run(ctx, "alone", took)
	if err != nil {
		return fmt.Errorf("alone: %w", err)
	}
	all := slices.Concat(alone.other, alone.same)
	r.AloneP50ms, r.AloneP99ms = quantile(all, 0.5), quantile(all, 0.99)

	var along figures
	var fed time.Duration
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { fed, err = f.feed(gctx, hot, rate); return err })
	group.Go(func() (err error) { along, err = s.run(gctx, "beside", took*7/10); return err })
	if err := group.Wait(); err != nil {
		return fmt.Errorf("beside: %w", err)
	}
	if err := s.ended(ctx, hot); err != nil {
		return err
	}
	r.FedPerS = round(float64(f.cfg.N) / fed.Seconds())
	r.P50ms, r.P99ms, r.MaxMs = quantile(along.other, 0.5), quantile(along.other, 0.99), quantile(along.other, 1)
	r.SameP50ms, r.SameP99ms = quantile(along.same, 0.5), quantile(along.same, 0.99)

	return nil
}

// measureBacklog starts a controller on a log in which a hot batch stands before the small ones.
func (f *field) measureBacklog(ctx context.Context, s *smalls, hot string, r *Result) error {
	if _, err := f.feed(ctx, hot, 0); err != nil {
		return fmt.Errorf("backlog: %w", err)
	}
	other, same := idOn("behind", 1, f.cfg.Partitions), idOn("behind", 0, f.cfg.Partitions)
	for _, id := range []string{other, same} {
		recs, err := f.recordsOf(id, smallTasks, 1)
		if err != nil {
			return err
		}
		if err := s.client.ProduceSync(ctx, recs...).FirstErr(); err != nil {
			return fmt.Errorf("behind the backlog: %w", err)
		}
	}
	var watch stopwatch
	return f.controller(ctx, timed{batch.New(batch.Config{}), &watch}, func(ctx context.Context) error {
		for _, x := range []struct {
			id string
			ms *float64
		}{{other, &r.BacklogOtherMs}, {same, &r.BacklogSameMs}} {
			if err := s.ended(ctx, x.id); err != nil {
				return err
			}
			*x.ms = round(float64(s.of(x.id).at.Sub(watch.begin.at)) / float64(time.Millisecond))
		}
		return nil
	})
}

// hotIDs are three batches of one partition.
func (f *field) hotIDs() (ids [3]string) {
	for i := range ids {
		ids[i] = idOn(fmt.Sprintf("hot-%d", i), 0, f.cfg.Partitions)
	}
	return ids
}

// feed writes a batch of n tasks, at a rate of completions a second (0 = as fast as it can), and returns what that took.
// The records are made before.
func (f *field) feed(ctx context.Context, id string, rate float64) (time.Duration, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(f.bootstrap), kgo.ProducerBatchMaxBytes(1<<20), kgo.MaxBufferedRecords(100_000),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(time.Millisecond))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	recs, err := f.recordsOf(id, f.cfg.N, f.cfg.K)
	if err != nil {
		return 0, err
	}
	var promise kgo.FirstErrPromise
	begin := time.Now()
	for i, rec := range recs {
		if rate > 0 {
			if err := pace(ctx, begin, i, rate/float64(f.cfg.K)); err != nil {
				return 0, err
			}
		}
		client.Produce(ctx, rec, promise.Promise())
	}
	err = promise.Err()
	return time.Since(begin), err
}

// recordsOf are those of one batch: START, seal, and all reports.
func (f *field) recordsOf(id string, n, k int) (recs []*kgo.Record, err error) {
	l := &load{cfg: Config{N: n, K: k, Batches: 1, Active: 1, Order: f.cfg.Order}, rng: rand.New(rand.NewPCG(f.cfg.Seed, 0)),
		emit: func(_ string, ev *codecs.Event) error {
			rec, err := codecs.Encode(f.topic(codecs.TopicControl), id, codecs.Source(f.prefix, "bench"), ev)
			recs = append(recs, wire(&rec))
			return err
		}}
	return recs, l.run()
}
