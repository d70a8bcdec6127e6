package processors

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/stage"
)

// stageUnit is one claimed partition of a goka stage. Records that goka works on wait in order until each is durable;
// then they are entered in the book, and a cut of the book is settled and marked.
type stageUnit struct {
	ctx   context.Context
	book  *stage.Book
	flow  stage.Flow
	mark  func(position int64, metadata string)
	fail  func(error)
	dead  atomic.Bool
	stop  chan struct{}
	ended chan struct{}
	wake  chan struct{}
	now   chan struct{}

	mu      sync.Mutex
	pending []*pending // in the order of the partition; the first is not durable
	byPos   map[int64]*pending
}

// pending is a record that is not durable yet.
type pending struct {
	rec    codecs.Record
	tag    codecs.Tag
	kind   int
	res    stage.Result
	marked bool
}

const (
	dataRecord = iota
	controlRecord
	rejectedRecord
)

func newStageUnit(ctx context.Context, book *stage.Book, flow stage.Flow, mark func(int64, string), fail func(error)) *stageUnit {
	return &stageUnit{ctx: context.WithoutCancel(ctx), book: book, flow: flow, mark: mark, fail: fail, byPos: map[int64]*pending{}, stop: make(chan struct{}),
		ended: make(chan struct{}), wake: make(chan struct{}, 1), now: make(chan struct{}, 1)}
}

// expect begins a record.
func (u *stageUnit) expect(rec *codecs.Record, tag *codecs.Tag, kind int) *pending {
	p := &pending{rec: *rec, tag: *tag, kind: kind}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pending = append(u.pending, p)
	u.byPos[rec.Offset] = p
	return p
}

// marked is goka's mark: the callback has returned, the table write is acked, and so is what was sent.
func (u *stageUnit) marked(offset int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if p := u.byPos[offset]; p != nil {
		p.marked = true
		u.enter()
	}
}

// enter moves the durable records in front to the book; mu is held.
func (u *stageUnit) enter() {
	for len(u.pending) > 0 && !u.dead.Load() {
		p := u.pending[0]
		if !p.marked {
			return
		}
		hurry := false
		switch p.kind {
		case controlRecord:
			hurry = u.book.Control(&p.rec, &p.tag)
		case rejectedRecord:
			u.book.Rejected(&p.rec)
		default:
			hurry = u.book.Data(&p.rec, &p.tag, &p.res)
		}
		delete(u.byPos, p.rec.Offset)
		u.pending = u.pending[1:]
		signal(u.wake)
		if hurry {
			signal(u.now)
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run settles cuts and marks them until drain.
func (u *stageUnit) run() {
	defer close(u.ended)
	linger, commit := time.NewTimer(time.Hour), time.NewTicker(u.flow.CommitEvery)
	defer linger.Stop()
	defer commit.Stop()
	for {
		step, last := u.settle, false
		select {
		case <-commit.C:
			step = u.commit
		case <-u.wake:
			linger.Reset(u.flow.ReportAfter)
			select {
			case <-u.now:
			case <-linger.C:
			case <-u.stop:
				last = true
			}
		case <-u.stop:
			last = true
		}
		if u.dead.Load() {
			return
		}
		err := step()
		if err == nil && last {
			err = u.commit()
		}
		if err != nil {
			u.crash(err)
		}
		if err != nil || last {
			return
		}
	}
}

func (u *stageUnit) settle() error {
	cut := u.book.Cut()
	if cut == nil {
		return nil
	}
	return u.book.Settle(cut)
}

// commit marks what is durable; sarama commits it.
func (u *stageUnit) commit() error {
	st, text, err := u.book.Durable(u.ctx)
	if err != nil || st == nil || u.dead.Load() {
		return err
	}
	u.mark(st.Position, text)
	u.book.Committed(st)
	return nil
}

// crash ends the unit: nothing more of it is accounted, and the session ends.
func (u *stageUnit) crash(err error) {
	if !u.dead.Swap(true) && !errors.Is(err, errStopped) {
		u.fail(err)
	}
}

// drain settles what is durable and ends. What is still pending is left to the next owner.
func (u *stageUnit) drain() {
	close(u.stop)
	<-u.ended
	u.book.Close()
}
