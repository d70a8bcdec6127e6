package bench

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/batch"
)

// timed is a machine that starts a stopwatch with its first record.
type timed struct {
	processors.Machine
	watch *stopwatch
}

// Decode is the first thing that happens to a record.
func (t timed) Decode(rec *codecs.Record, ev *codecs.Event) error {
	t.watch.first()
	return t.Machine.Decode(rec, ev)
}

// quiesce is the controller as it runs in production.
func quiesce(ctx context.Context, f *field) (measure, error) {
	var watch stopwatch
	var m measure
	err := f.controller(ctx, timed{batch.New(batch.Config{}), &watch}, func(ctx context.Context) error {
		if err := awaitResults(ctx, f.bootstrap, f.topic(codecs.TopicEvents), f.cfg.Batches); err != nil {
			return err
		}
		m = watch.stop()
		return nil
	})
	return m, err
}

// controller runs a controller while fn runs.
func (f *field) controller(ctx context.Context, machine processors.Machine, fn func(context.Context) error) error {
	dir, err := os.MkdirTemp("", "quiesce-bench")
	if err != nil {
		return fmt.Errorf("controller: %w", err)
	}
	defer os.RemoveAll(dir)
	p, err := processors.New(processors.Config{Bootstrap: []string{f.bootstrap}, Prefix: f.prefix, Machine: machine, DataDir: dir, Logger: f.cfg.Log})
	if err != nil {
		return fmt.Errorf("controller: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := p.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("controller: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		defer cancel()
		return fn(ctx)
	})
	return group.Wait()
}
