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
	"github.com/quiesce/quiesce/processors/markers"
)

// unit handles the records of one partition in order. One goroutine handles (run), another makes what was handled
// durable (flush); they share what mu guards.
type unit struct {
	s       *session
	name    *codecs.Unit
	topicID codecs.TopicID

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

	mu      sync.Mutex
	machine *markers.Unit
	outputs *epoch
	reports reports
	tally   Count // since the last cut
	from    int64 // position of the last cut
	waking  bool
	hurried bool

	commitMu sync.Mutex
	durable  *codecs.UnitState // to be committed; nil = nothing new
	dead     atomic.Bool       // crashed or lost: nothing may be committed any more
}

func newUnit(s *session, name *codecs.Unit, id codecs.TopicID, machine *markers.Unit) *unit {
	u := &unit{s: s, name: name, topicID: id, machine: machine, outputs: &epoch{}, from: machine.Position(),
		queue: make(chan []*kgo.Record, s.cfg.Flow.Buffer+1),
		stop:  make(chan struct{}), ended: make(chan struct{}), done: make(chan struct{}),
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
	rec := fromKgo(k)
	if rec.Offset < u.machine.Position() { // fetched before the unit's position was set
		return nil
	}
	tag, ok, err := codecs.ParseTag(rec.Headers)
	switch {
	case err != nil:
		return u.reject(&rec, err.Error())
	case ok && tag.IsControl():
		u.control(&rec, &tag)
		return nil
	case !ok && !u.s.wrap.untagged:
		return u.reject(&rec, "record without batch headers")
	}
	res, err := u.s.wrap.handle(u.ctx, &rec, &tag)
	if err != nil {
		return err
	}
	u.account(&rec, &tag, &res)
	return u.s.cfg.Hook(PointHandled)
}

// reject sends a record to the dead letter and nowhere else.
func (u *unit) reject(rec *codecs.Record, reason string) error {
	u.s.cfg.Log.Warn("record sent to the dead letter", "stage", u.name.Stage, "topic", rec.Topic, "partition", rec.Partition,
		"offset", rec.Offset, "reason", reason)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tally.Untagged++
	u.tally.DeadLetter++
	u.produce(u.s.deadLetter(rec, u.topicID, reason))
	u.machine.Pass(rec.Offset)
	u.signal(false)
	return u.s.cfg.Hook(PointHandled)
}

// control takes a record that carries no data: END, or what a later release may add.
func (u *unit) control(rec *codecs.Record, tag *codecs.Tag) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if tag.Control != codecs.ControlEnd || u.s.status.over(tag.Batch, tag.Run, tag.Round) {
		u.machine.Pass(rec.Offset)
		u.signal(false)
		return
	}
	u.tally.Markers++
	u.signal(u.machine.End(rec.Offset, batchOf(tag), tag.Plan, tag.From))
}

func batchOf(tag *codecs.Tag) markers.Batch {
	return markers.Batch{ID: tag.Batch, Run: tag.Run, Round: tag.Round}
}

// account hands what follows from a record to the producer and to the next cut.
func (u *unit) account(rec *codecs.Record, tag *codecs.Tag, res *result) {
	u.mu.Lock()
	defer u.mu.Unlock()
	res.count(&u.tally, tag.Batch != "")
	for i := range res.send {
		u.produce(toKgo(&res.send[i]))
	}
	if res.letter != "" {
		u.produce(u.s.deadLetter(rec, u.topicID, res.letter))
	}
	full := u.reports.add(tag, res.items, u.s.cfg.Flow.ReportCount)
	if res.cascade {
		u.machine.Data(rec.Offset, batchOf(tag), tag.Plan, res.machine)
	} else {
		u.machine.Pass(rec.Offset)
	}
	u.signal(full)
}

func (r *result) count(c *Count, tagged bool) {
	if tagged {
		c.Consumed++
	} else {
		c.Untagged++
	}
	switch r.verdict.outcome {
	case codecs.Failed:
		c.Failed++
		c.DeadLetter++
	case codecs.Skipped:
		c.Skipped++
	}
	c.Produced += uint64(len(r.send))
	c.Retries += uint64(r.verdict.retries)
}

// produce hands a record to the producer; mu is held, so that its epoch is the open one.
func (u *unit) produce(rec *kgo.Record) {
	u.outputs.add()
	u.s.client.Produce(u.s.produceCtx, rec, u.outputs.promise)
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
	<-u.done
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
}

var (
	errDrained = errors.New("the partition was given up")
	errLost    = errors.New("the partition was lost")
)
