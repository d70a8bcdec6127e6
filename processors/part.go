package processors

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quiesce/quiesce/codecs"
)

// part is one ownership of one partition: a cache of decoded rows, an open cut, and one flusher (run). A new ownership
// is a new part; takeOver makes it.
type part struct {
	*env
	id    int32
	claim uint64
	st    store

	table  lane // the changelog
	status lane // the compacted output
	mark   func(next int64)
	onFail func(error)
	wake   chan struct{}
	high   atomic.Int64 // end of the input, as the last fetch told

	mu      sync.Mutex
	room    sync.Cond // the open cut was closed, or the part failed
	cache   cache
	open    *cut
	next    int64 // input offset expected next
	marks   marks
	changed bool // marks differ from those of the last cut
	faulty  map[int64]string
	watched map[string]struct{}
	ev      codecs.Event
	msgs    []codecs.Message
	err     error
	drain   bool
	collect []candidate
	timers  timers
	done    position  // the last cut that is wholly done
	written int64     // offset of the position row that is durable; -1 = none
	moved   time.Time // when done last changed

	// Of the flusher alone.
	command  bool // a command was in the cut that done describes
	doneAt   time.Time
	lastCut  time.Time
	lastSize int
	looked   time.Time // for strangers
}

func newPart(e *env, id int32, st store) *part {
	p := &part{env: e, id: id, st: st, wake: make(chan struct{}, 1), mark: func(int64) {}, onFail: func(error) {}}
	p.room.L = &p.mu
	p.cache.init(e.cacheBytes, e.off.evictDirty)
	p.open = &cut{}
	p.faulty = e.faults.of(id)
	p.watched = e.faults.suspects(id)
	return p
}

// handle takes the next input record. It blocks while the open cut is full, and fails when the ownership has ended. It
// keeps no slice of rec after it returned. Not for concurrent use.
func (p *part) handle(rec *codecs.Record) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.open.full() && p.err == nil && !p.drain {
		p.room.Wait()
	}
	if p.err != nil {
		return p.err
	}
	if p.drain {
		return errStopped
	}
	if rec.Offset < p.next {
		return nil
	}
	c := p.open
	due := !c.dueSince.IsZero()
	if c.inputs == 0 {
		c.first = rec.Offset
		c.since = time.Now()
	}
	if err := p.accept(rec); err != nil {
		p.failLocked(err)
		return err
	}
	c.inputs++
	c.last = rec.Offset
	p.next = rec.Offset + 1
	if c.inputs == 1 || c.full() || !due && !c.dueSince.IsZero() {
		p.wakeUp()
	}
	return nil
}

func (p *part) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// fail ends the ownership: nothing is sent any more.
func (p *part) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failLocked(err)
}

func (p *part) failLocked(err error) {
	if p.err != nil {
		return
	}
	p.err = err
	p.room.Broadcast()
	p.wakeUp()
	p.onFail(err)
}

func (p *part) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// run is the flusher. It returns when ctx ends or after stop, with the error that ended the ownership.
func (p *part) run(ctx context.Context) error {
	timer := time.NewTimer(p.timing.Idle)
	defer timer.Stop()
	for {
		if err := p.failed(); err != nil {
			return err
		}
		if err := p.ripen(p.now()); err != nil {
			p.fail(err)
			return err
		}
		p.nudge(p.now())
		c, wait, last := p.nextCut(time.Now())
		if c != nil {
			if err := p.flush(ctx, c); err != nil {
				p.fail(err)
				return err
			}
			continue
		}
		if last {
			p.fail(errStopped)
			return nil
		}
		if idle := time.Since(p.looked); idle >= p.timing.Idle {
			if err := p.lookForStrangers(ctx); err != nil {
				p.fail(err)
				return err
			}
		} else {
			wait = min(wait, p.timing.Idle-idle)
		}
		timer.Reset(min(wait, p.untilNudge(p.now())))
		select {
		case <-ctx.Done():
			p.fail(fmt.Errorf("partition %d: %w", p.id, context.Cause(ctx)))
			return ctx.Err()
		case <-p.wake:
		case <-timer.C:
		}
	}
}

// stop makes run close the open cut at once, and return when it is done.
func (p *part) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drain = true
	p.room.Broadcast()
	p.wakeUp()
}
