package stage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// unit handles the records of one partition in order. One goroutine handles (run), another makes what was handled
// durable (flush); they share what mu guards.
type unit struct {
	s    *session
	book *Book
	name *codecs.Unit

	next int64      // offset of the next record; run's own
	tag  codecs.Tag // of the record in hand, used again
	res  Result     // of the record in hand, used again

	queue   chan []*kgo.Record
	waiting atomic.Int64 // records in queue
	paused  atomic.Bool

	ctx    context.Context // of the handler
	cancel context.CancelCauseFunc
	stop   chan struct{} // closed: take no more records
	ended  chan struct{} // closed: run has returned
	wake   chan struct{} // there is something to cut
	urgent chan struct{} // it should not wait
	done   chan struct{} // closed: flush has returned, all that was handled is durable
	dead   atomic.Bool   // crashed or lost: nothing may be committed any more

	mu      sync.Mutex
	outputs *epoch // of the records in the book since the last cut
	waking  bool
	hurried bool
}

func newUnit(s *session, book *Book) *unit {
	u := &unit{s: s, book: book, name: book.Unit(), outputs: newEpoch(), next: book.Position(), queue: make(chan []*kgo.Record, s.cfg.Flow.Buffer+2),
		stop: make(chan struct{}), ended: make(chan struct{}), done: make(chan struct{}),
		wake: make(chan struct{}, 1), urgent: make(chan struct{}, 1)}
	u.ctx, u.cancel = context.WithCancelCause(s.ctx)
	return u
}

// start begins the two goroutines; drain or kill ends them.
func (u *unit) start() {
	go u.run()
	go u.flush()
}

// run handles records until stop.
func (u *unit) run() {
	defer close(u.ended)
	for {
		select {
		case <-u.stop:
			return
		case <-u.ctx.Done():
			return
		default:
		}
		select {
		case <-u.stop:
			return
		case <-u.ctx.Done():
			return
		case recs := <-u.queue:
			for _, rec := range recs {
				select {
				case <-u.stop:
					return
				default:
				}
				if err := u.take(rec); err != nil {
					if u.ctx.Err() == nil {
						u.s.fail(fmt.Errorf("unit %s at %d: %w", u.name.Path(), rec.Offset, err))
					}
					return
				}
				u.s.eased(u, u.waiting.Add(-1))
			}
		}
	}
}

// take handles one record.
func (u *unit) take(k *kgo.Record) error {
	if k.Offset < u.next { // fetched before the unit's position was set
		return nil
	}
	rec := fromKgo(k)
	ok, err := u.tag.Parse(rec.Headers)
	switch {
	case err != nil:
		u.reject(&rec, err.Error())
	case ok && u.tag.IsControl():
		u.mu.Lock()
		u.signal(u.book.Control(&rec, &u.tag))
		u.mu.Unlock()
		u.next = rec.Offset + 1
		return nil
	case !ok && !u.s.cfg.Untagged:
		u.reject(&rec, "record without batch headers")
	default:
		if err := u.s.Handle(u.ctx, &rec, &u.tag, u.s.cfg.Handler, &u.res); err != nil {
			return err
		}
		u.account(&rec, &u.tag, &u.res)
	}
	u.next = rec.Offset + 1
	return u.s.cfg.Hook(PointHandled)
}

// reject sends a record to the dead letter and nowhere else.
func (u *unit) reject(rec *codecs.Record, reason string) {
	u.s.cfg.Log.Warn("record sent to the dead letter", "stage", u.name.Stage, "topic", rec.Topic, "partition", rec.Partition,
		"offset", rec.Offset, "reason", reason)
	letter := u.s.DeadLetter(rec, reason)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.produce(&letter)
	u.book.Rejected(rec)
	u.signal(false)
}

// account hands what follows from a record to the producer and to the next cut.
func (u *unit) account(rec *codecs.Record, tag *codecs.Tag, res *Result) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range res.Send {
		u.produce(&res.Send[i])
	}
	u.signal(u.book.Data(rec, tag, res))
}

// produce hands a record to the producer; mu is held, so that its epoch is the open one.
func (u *unit) produce(rec *codecs.Record) {
	u.outputs.add()
	u.s.client.Produce(u.s.Desk.ctx, toKgo(rec), u.outputs.done)
}

// signal wakes the flusher; mu is held.
func (u *unit) signal(now bool) {
	if !u.waking {
		u.waking = true
		poke(u.wake)
	}
	if now && !u.hurried {
		u.hurried = true
		poke(u.urgent)
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// drain stops the unit after the record it is at and waits until all that was handled is durable. A handler that takes
// longer than the drain time is cancelled, and its record is left to the next owner.
func (u *unit) drain() {
	close(u.stop)
	t := time.NewTimer(u.s.cfg.Flow.DrainFor)
	defer t.Stop()
	select {
	case <-u.ended:
	case <-t.C:
		u.s.cfg.Log.Warn("the handler did not end in time", "stage", u.name.Stage, "topic", u.name.Topic,
			"partition", u.name.Partition, "drain_for", u.s.cfg.Flow.DrainFor)
		u.cancel(errDrained)
		<-u.ended
	}
	u.join()
	u.cancel(errDrained)
}

// kill ends the unit at once: nothing more of it becomes durable.
func (u *unit) kill(why error) {
	u.dead.Store(true)
	u.cancel(why)
	u.join()
}

// join waits for the goroutines of a unit that was drained or killed.
func (u *unit) join() {
	<-u.ended
	<-u.done
	u.book.Close()
}

var (
	errDrained = errors.New("the partition was given up")
	errLost    = errors.New("the partition was lost")
)
