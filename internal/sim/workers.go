package sim

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/worker"
)

// ErrCrash is what a handler returns to take its worker process down: nothing is reported, and what it held is delivered
// again when its end is noticed.
var ErrCrash = errors.New("crash")

// Pool is a number of worker processes of one handler each.
type Pool struct {
	// Config of every process: Queue, Handler, Splitter, Retries.
	Config worker.Config
	// Workers is how many there are.
	Workers int
	// Noticed is how long a crashed process's tasks are missing. Default 30 s.
	Noticed time.Duration
	// Restart is how long after that another process takes its place. Default 30 s.
	Restart time.Duration
}

// Work runs a pool until the deployment stops. It returns at once.
func (d *Deployment) Work(p Pool) {
	if p.Noticed == 0 {
		p.Noticed = 30 * time.Second
	}
	if p.Restart == 0 {
		p.Restart = 30 * time.Second
	}
	if p.Config.Log == nil {
		p.Config.Log = d.cfg.Log
	}
	p.Config.Concurrency, p.Config.Prefix = 1, Prefix
	for range p.Workers {
		d.group.Go(func() error {
			for d.ctx.Err() == nil {
				if err := d.process(&p); err != nil {
					return err
				}
				wait(d.ctx, p.Restart)
			}
			return nil
		})
	}
}

// process is the life of one process: until it crashes or the deployment stops.
func (d *Deployment) process(p *Pool) error {
	alive, die := context.WithCancel(d.ctx)
	defer die()
	consumer := d.Tasks.Consumer(p.Config.Queue)
	dead := &switchedOff{Log: d.Log}
	crashed := false
	crash := func() { // it holds its only task, so nothing else happens in it
		crashed = true
		dead.off()
		wait(d.ctx, p.Noticed)
		consumer.Crash()
		die()
	}
	cfg := p.Config
	cfg.DrainTimeout = time.Nanosecond
	if h := cfg.Handler; h != nil {
		cfg.Handler = func(ctx context.Context, t *worker.Task) (worker.Result, error) {
			res, err := h(ctx, t)
			if errors.Is(err, ErrCrash) {
				crash()
				<-ctx.Done()
			}
			return res, err
		}
	}
	if s := cfg.Splitter; s != nil {
		cfg.Splitter = func(ctx context.Context, t *worker.Task, emit func(*codecs.ManifestTask) error) error {
			err := s(ctx, t, emit)
			if errors.Is(err, ErrCrash) {
				crash()
				<-ctx.Done()
			}
			return err
		}
	}
	reporter := worker.NewLogReporter(dead, cfg)
	err := worker.Work(alive, cfg, consumer, d.Tasks, reporter)
	reporter.Close()
	if crashed || d.ctx.Err() != nil {
		err = nil // of a process that is no more
	}
	return errors.Join(err, consumer.Close())
}

// switchedOff is the log as a process that may die sees it: what a dead one writes goes nowhere.
type switchedOff struct {
	*Log
	mu   sync.Mutex
	dead bool
}

func (s *switchedOff) off() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
}

// Append implements worker.Log.
func (s *switchedOff) Append(ctx context.Context, rec *codecs.Record, done func(int32, int64, error)) {
	s.mu.Lock()
	dead := s.dead
	s.mu.Unlock()
	if dead {
		done(0, 0, ErrCrash)
		return
	}
	s.Log.Append(ctx, rec, done)
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
