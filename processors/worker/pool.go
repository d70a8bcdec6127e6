package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quiesce/quiesce/processors/queue"
)

// errInterrupted is why an attempt's context ended: the delivery or the process did.
var errInterrupted = errors.New("the worker is shutting down")

// maxUnacked bounds the outcomes that are reported and not yet durable.
const maxUnacked = 10_000

// pool runs the tasks of one consumer.
type pool struct {
	cfg      Config
	consumer queue.Consumer
	producer queue.Producer
	reporter Reporter
	shortest time.Duration // of the retry tiers

	interrupt context.CancelCauseFunc
	attempts  context.Context // parent of every attempt

	mu      sync.Mutex
	slots   int // free
	out     int // deliveries that are not done or released
	stuck   int // handlers that were left alone
	giveUp  context.CancelCauseFunc
	changed chan struct{} // closed and replaced when one of these changes
}

// Work runs a worker over the parts it is given until ctx is done: Run without Kafka. It does not close them.
func Work(ctx context.Context, cfg Config, c queue.Consumer, p queue.Producer, r Reporter) error {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return err
	}
	w := &pool{cfg: cfg, consumer: c, producer: p, reporter: r, slots: cfg.Concurrency, changed: make(chan struct{}), shortest: time.Second}
	if len(cfg.Retries) > 0 {
		w.shortest = slices.Min(cfg.Retries)
	}
	w.attempts, w.interrupt = context.WithCancelCause(context.Background())
	defer w.interrupt(errInterrupted)
	err := w.receive(ctx)
	return errors.Join(err, w.drain())
}

// receive starts tasks until ctx is done, the consumer is closed or too many handlers are stuck.
func (w *pool) receive(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w.change(func() { w.giveUp = stop })
	for {
		free := w.free(ctx)
		if free == 0 {
			return w.stuckError(ctx)
		}
		ds, err := w.consumer.Receive(ctx, free)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, queue.ErrClosed) {
				return w.stuckError(ctx)
			}
			return fmt.Errorf("worker of queue %s: %w", w.cfg.Queue, err)
		}
		w.change(func() { w.slots -= len(ds); w.out += len(ds) })
		for _, d := range ds {
			go w.run(d)
		}
	}
}

// free waits for a free slot and returns how many there are; 0 when ctx is done.
func (w *pool) free(ctx context.Context) int {
	n := 0
	if w.wait(ctx, func() bool { n = w.slots; return n > 0 && w.out < maxUnacked }) != nil {
		return 0
	}
	return n
}

// stuckError is why ctx ended, if handlers are the reason.
func (w *pool) stuckError(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), ErrStuck) {
		return fmt.Errorf("worker of queue %s: %d %w", w.cfg.Queue, w.cfg.Stuck, ErrStuck)
	}
	return nil
}

// drain waits for what runs, interrupts what runs too long, and waits for the outcomes to be durable.
func (w *pool) drain() error {
	idle := func() bool { return w.out == 0 }
	patient, cancel := context.WithTimeout(context.Background(), w.cfg.DrainTimeout)
	defer cancel()
	if w.wait(patient, idle) == nil {
		return nil
	}
	w.interrupt(errInterrupted)
	last, end := context.WithTimeout(context.Background(), w.cfg.Patience)
	defer end()
	if w.wait(last, idle) != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		return fmt.Errorf("worker of queue %s: %d tasks did not end in time", w.cfg.Queue, w.out)
	}
	return nil
}

// change changes the pool's numbers and wakes who waits for it.
func (w *pool) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	close(w.changed)
	w.changed = make(chan struct{})
}

// wait blocks until ok holds (under w.mu) or ctx is done.
func (w *pool) wait(ctx context.Context, ok func() bool) error {
	for {
		w.mu.Lock()
		held, changed := ok(), w.changed
		w.mu.Unlock()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if held {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// done and release end a delivery.
func (w *pool) done(d *queue.Delivery) {
	d.Done()
	w.change(func() { w.out-- })
}

func (w *pool) release(d *queue.Delivery) {
	w.cfg.Counters.Interrupted.Add(1)
	d.Release()
	w.change(func() { w.out-- })
}
