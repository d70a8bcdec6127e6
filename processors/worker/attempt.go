package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/queue"
)

// attempt is one try at a task.
type attempt struct {
	w      *pool
	d      *queue.Delivery
	t      *Task
	ctx    context.Context
	cancel context.CancelCauseFunc
	start  time.Time

	over sync.Once // decided: by the handler's return, or because it is left alone
}

// errTimedOut is why the context of an attempt ended that took too long.
var errTimedOut = errors.New("timed out")

// run handles one delivery in a goroutine of its own, which drain waits for.
func (w *pool) run(d *queue.Delivery) {
	t := d.Task
	if d.Buried || early(t, time.Now(), w.shortest) > 0 {
		defer w.change(func() { w.slots++ })
		if d.Buried {
			w.end(&End{Delivery: d, Task: t, Outcome: codecs.Lost, Reason: fmt.Sprintf("delivered %d times without an end", d.Count-1)})
			return
		}
		w.cfg.Counters.Waited.Add(1)
		w.again(d, t, early(t, time.Now(), w.shortest))
		return
	}
	w.cfg.Counters.Attempts.Add(1)
	a := &attempt{w: w, d: d, t: t, start: time.Now()}
	a.ctx, a.cancel = context.WithCancelCause(w.attempts)
	defer a.cancel(nil)
	defer context.AfterFunc(d.Context(), func() { a.cancel(errInterrupted) })()
	if limit := time.Duration(t.AttemptTimeout) * time.Millisecond; limit > 0 {
		defer time.AfterFunc(limit, func() { a.cancel(fmt.Errorf("%w after %v", errTimedOut, limit)) }).Stop()
		defer time.AfterFunc(limit+w.cfg.Patience, a.leave).Stop()
	}
	res, err := a.call()
	stuck := true
	a.over.Do(func() {
		stuck = false
		a.finish(res, err)
	})
	w.change(func() {
		w.slots++
		if stuck {
			w.stuck--
		}
	})
}

// leave ends an attempt whose handler goes on after its time-out. Its slot stays taken for as long as it does.
func (a *attempt) leave() {
	a.over.Do(func() {
		a.w.cfg.Log.Error("handler ignores its time-out; it is left alone", "queue", a.w.cfg.Queue, "task_id", a.t.Id,
			"batch_id", a.t.Batch, "index", a.t.Index, "timeout", time.Duration(a.t.AttemptTimeout)*time.Millisecond)
		a.w.cfg.Counters.Stuck.Add(1)
		a.w.change(func() {
			if a.w.stuck++; a.w.stuck >= a.w.cfg.Stuck {
				a.w.giveUp(ErrStuck)
			}
		})
		a.finish(Result{}, context.Cause(a.ctx))
	})
}

// call runs the handler; a panic is an error.
func (a *attempt) call() (res Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.w.cfg.Log.Error("handler panicked", "queue", a.w.cfg.Queue, "task_id", a.t.Id, "batch_id", a.t.Batch, "index", a.t.Index,
				"panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	switch {
	case a.t.Kind == kindSplit && a.w.cfg.Splitter != nil:
		return Result{}, a.split()
	case a.t.Kind != kindSplit && a.w.cfg.Handler != nil:
		return a.w.cfg.Handler(a.ctx, a.t)
	}
	return Result{}, Fail(fmt.Errorf("the workers of queue %s do not run tasks of kind %q", a.w.cfg.Queue, a.t.Kind))
}

// finish decides what follows an attempt.
func (a *attempt) finish(res Result, err error) {
	cause := context.Cause(a.ctx)
	if n := len(res.Payload.GetData()); err == nil && n > MaxResult {
		err = Fail(fmt.Errorf("result of %d bytes by value, at most %d: return a reference", n, MaxResult))
	}
	e := &End{Delivery: a.d, Task: a.t, QueueWait: queueWait(a.t, a.start), Run: time.Since(a.start)}
	var skip skipped
	var final failed
	switch {
	case errors.Is(cause, errInterrupted):
		a.w.release(a.d)
		return
	case err == nil && len(res.Children) > 0:
		if e.Children, err = a.children(res.Children); err == nil {
			e.Outcome, e.Result = codecs.OK, res.Payload
		}
	case err == nil:
		e.Outcome, e.Result = codecs.OK, res.Payload
	case errors.As(err, &skip):
		e.Outcome, e.Reason = codecs.Skipped, clip(skip.reason)
	}
	if e.Outcome == codecs.Outcome_unspecified {
		if again, wait, ok := next(a.t, time.Now()); ok && !errors.As(err, &final) {
			a.w.cfg.Counters.Retries.Add(1)
			a.w.again(a.d, again, wait)
			return
		}
		e.Outcome, e.Reason = codecs.Failed, clip(err.Error())
		if errors.Is(cause, errTimedOut) && !errors.As(err, &final) {
			e.Outcome, e.Reason = codecs.TimedOut, clip(cause.Error())
		}
	}
	if a.t.Kind == kindSplit && e.Outcome == codecs.OK { // it has proposed
		a.w.cfg.Counters.ended(e.Outcome)
		a.w.done(a.d)
		return
	}
	a.w.end(e)
}

func queueWait(t *Task, start time.Time) time.Duration {
	due := max(t.EnqueuedAt, t.NotBefore)
	if due == 0 {
		return 0
	}
	return max(start.Sub(time.UnixMilli(due)), 0)
}
