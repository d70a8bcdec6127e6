package worker

import (
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/quiesce/quiesce/codecs"
)

// Bounds of a report.
const (
	maxReportTasks   = 1000
	maxReportReasons = 256 << 10 // bytes
)

func newID() string { return ulid.Make().String() }

// reports coalesces the outcomes of sub-jobs per batch, run and round. A report leaves at once when none of its batch is
// under way; what comes meanwhile shares the next one.
type reports struct {
	after time.Duration
	send  func(batch string, r *codecs.BatchReport, done func(error))

	mu     sync.Mutex
	groups map[groupKey]*group
	flying sync.WaitGroup
}

type groupKey struct {
	batch, run string
	round      uint32
}

// group is what waits for one batch's next report.
type group struct {
	tasks   codecs.Coalescer
	timing  *timing
	acked   []func(error)
	reasons int         // bytes
	flying  int         // reports under way
	timer   *time.Timer // sends what waits although a report is under way
}

func newReports(after time.Duration, send func(string, *codecs.BatchReport, func(error))) *reports {
	return &reports{after: after, send: send, groups: map[groupKey]*group{}}
}

// add takes an outcome.
func (r *reports) add(e *End, acked func(error)) {
	k := groupKey{e.Task.Batch, e.Task.Run, e.Task.Round}
	item := &codecs.ReportItem{First: e.Task.Index, Outcome: e.Outcome, Reason: e.Reason, Attempt: e.Task.Attempt}
	if e.Children != nil { // added tasks belong to one completion: a report of its own
		t := newTiming()
		t.add(e)
		r.flying.Add(1)
		r.send(k.batch, &codecs.BatchReport{Run: k.run, Round: k.round, Items: []*codecs.ReportItem{item}, Timing: t.message(),
			Children: e.Children}, func(err error) { acked(err); r.flying.Done() })
		return
	}
	r.under(func() func() { return r.take(k, item, e, acked) })
}

// under runs f under the lock and then, without it, what f returned: to send may block until something was answered, and
// an answer takes the lock.
func (r *reports) under(f func() func()) {
	r.mu.Lock()
	send := f()
	r.mu.Unlock()
	if send != nil {
		send()
	}
}

func (r *reports) take(k groupKey, item *codecs.ReportItem, e *End, acked func(error)) (send func()) {
	g := r.groups[k]
	if g == nil {
		g = &group{timing: newTiming()}
		r.groups[k] = g
	}
	if err := g.tasks.Add(item); err != nil {
		return func() { acked(err) }
	}
	g.timing.add(e)
	g.acked = append(g.acked, acked)
	g.reasons += len(e.Reason)
	switch {
	case g.flying == 0, len(g.acked) >= maxReportTasks, g.reasons >= maxReportReasons:
		return r.flush(k, g)
	case g.timer == nil:
		g.timer = time.AfterFunc(r.after, func() { r.under(func() func() { return r.flush(k, g) }) })
	}
	return nil
}

// flush takes what waits and returns what sends it.
func (r *reports) flush(k groupKey, g *group) (send func()) {
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	if len(g.acked) == 0 {
		return nil
	}
	acked, tasks, timing := g.acked, g.tasks, g.timing
	g.acked, g.reasons, g.tasks, g.timing = nil, 0, codecs.Coalescer{}, newTiming()
	g.flying++
	r.flying.Add(1)
	done := func(err error) {
		for _, f := range acked {
			f(err)
		}
		r.under(func() func() { return r.landed(k, g) })
		r.flying.Done()
	}
	return func() {
		items, err := tasks.Items()
		if err != nil {
			done(err)
			return
		}
		r.send(k.batch, &codecs.BatchReport{Run: k.run, Round: k.round, Items: items, Timing: timing.message()}, done)
	}
}

// landed notes that a report was answered; what came meanwhile leaves.
func (r *reports) landed(k groupKey, g *group) (send func()) {
	if g.flying--; g.flying > 0 {
		return nil
	}
	if len(g.acked) > 0 {
		return r.flush(k, g)
	}
	delete(r.groups, k)
	return nil
}

// close sends what waits and returns when everything is answered.
func (r *reports) close() {
	r.mu.Lock()
	var sends []func()
	for k, g := range r.groups {
		if send := r.flush(k, g); send != nil {
			sends = append(sends, send)
		}
	}
	r.mu.Unlock()
	for _, send := range sends {
		send()
	}
	r.flying.Wait()
}

// timing collects durations.
type timing struct{ wait, run *codecs.Sketch }

func newTiming() *timing { return &timing{codecs.NewSketch(), codecs.NewSketch()} }

func (t *timing) add(e *End) {
	t.wait.Add(ms(e.QueueWait))
	t.run.Add(ms(e.Run))
}

// message is nil when a sketch cannot be written: a report is worth more than its timing.
func (t *timing) message() *codecs.Timing {
	wait, err1 := t.wait.AppendBinary(nil)
	run, err2 := t.run.AppendBinary(nil)
	if err1 != nil || err2 != nil {
		return nil
	}
	return &codecs.Timing{QueueWait: wait, Run: run}
}
