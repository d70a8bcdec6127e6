package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/batch"
)

// RecoveryFigures are those of one scenario alone.
type RecoveryFigures struct {
	SameDiskSeconds float64 `json:"same_disk_seconds"` // seconds is with an empty disk
}

// recovery takes over a table of collected and open batches, on an empty disk, and again after a clean stop on the same
// one. Each time a batch must complete afterwards.
func recovery(ctx context.Context, f *field, r *Result) error {
	rows, err := f.fill(ctx, f.cfg.N, f.cfg.Active)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "quiesce-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r.Rows, r.RecoveryFigures = rows, &RecoveryFigures{}
	for i, took := range []*float64{&r.Seconds, &r.SameDiskSeconds} {
		m, err := quiet(func() (measure, error) {
			return f.takeOver(ctx, dir, func(ctx context.Context) error { return f.complete(ctx, filledID(i, true)) })
		})
		if err != nil {
			return err
		}
		*took = round(m.seconds)
		if i == 0 {
			r.RowsPerS = round(float64(rows) / m.seconds)
			r.CPUPerMillion = round(m.cpu.Seconds() / float64(rows) * 1e6)
			r.RSSMiB, r.ForeignCPUPercent = rss(), m.foreign
		}
	}
	return nil
}

// takeOver measures from the start of a controller until it has its partitions, then lets it do something and stops it.
func (f *field) takeOver(ctx context.Context, dir string, then func(context.Context) error) (m measure, err error) {
	p, err := processors.New(processors.Config{Bootstrap: []string{f.bootstrap}, Prefix: f.prefix, Machine: batch.New(batch.Config{}), DataDir: dir, Logger: f.cfg.Log})
	if err != nil {
		return m, fmt.Errorf("controller: %w", err)
	}
	var watch stopwatch
	watch.first()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var ended sync.WaitGroup
	var failed error
	ended.Go(func() { failed = p.Run(ctx) })
	for p.Ready() != nil {
		select {
		case <-ctx.Done():
			ended.Wait()
			return m, errors.Join(ctx.Err(), failed)
		case <-time.After(time.Millisecond):
		}
	}
	m = watch.stop()
	err = then(ctx)
	cancel()
	ended.Wait()
	return m, errors.Join(err, failed)
}

// complete reports what an open batch of a filled table lacks and waits for its completion event.
func (f *field) complete(ctx context.Context, id string) error {
	p, err := newProbe(f)
	if err != nil {
		return err
	}
	defer p.client.Close()
	var missing []uint32
	for i := tasksOf / 2; i < tasksOf; i++ {
		missing = append(missing, uint32(i))
	}
	var recs []*kgo.Record
	l := &load{emit: func(_ string, ev *codecs.Event) error {
		rec, err := codecs.Encode(f.topic(codecs.TopicControl), id, codecs.Source(f.prefix, "bench"), ev)
		recs = append(recs, wire(&rec))
		return err
	}}
	if err := l.report(0, missing); err != nil {
		return err
	}
	if err := p.client.ProduceSync(ctx, recs...).FirstErr(); err != nil {
		return fmt.Errorf("complete %s: %w", id, err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := p.awaitBatch(ctx, id, func(r *kgo.Record) bool { return terminal(eventID(r)) }); err != nil {
		return fmt.Errorf("%s did not complete after the take-over: %w", id, err)
	}
	return nil
}
