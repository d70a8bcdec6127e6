package batch

import (
	"cmp"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/quiesce/quiesce/codecs"
)

func (s *step) audit() *codecs.Audit {
	if s.r.Audit == nil {
		s.r.Audit = &codecs.Audit{}
	}
	return s.r.Audit
}

// event announces something about the current run.
func (s *step) event(name, reason string) { s.out = append(s.out, s.lifecycle(name, reason)) }

func (s *step) lifecycle(name, reason string) codecs.Message {
	l := s.r.run
	d := &codecs.BatchEvent{Run: l.Run, Round: l.round(), State: l.State, PreviousState: l.PreviousState, Counts: clone(l.tally()),
		Position: l.Position, Reason: reason, Empty: l.sealed() && l.total() == 0, Owner: l.Start.GetOwner(),
		Labels: l.Start.GetLabels(), StartedAt: l.StartedAt, DecidedAt: s.r.Now, Notify: l.Start.GetNotify()}
	if s.r.Audit != nil {
		d.Audit = clone(s.r.Audit)
	}
	d.Rate, d.Eta = l.pace(s.r.Now)
	return codecs.Message{Topic: codecs.TopicEvents, Key: s.r.Batch, Type: name, Data: d, Due: name != codecs.TypeBatchProgress, Trace: s.ev.Traceparent}
}

// pace is the mean rate since START in tasks per second, and the time at which the rest is done at that rate, ms since
// the epoch; 0 = unknown.
func (l *life) pace(now int64) (rate float64, eta int64) {
	ended := l.sum.ended()
	if ms := now - l.StartedAt; ms > 0 && ended > 0 && l.Final == nil {
		rate = float64(ended) * 1000 / float64(ms)
		if l.sealed() && l.open() != nil {
			eta = now + int64(float64(l.total()-min(ended, l.total()))/rate*1000)
		}
	}
	return rate, eta
}

// progress tells at most once a second how far an open batch is.
func (s *step) progress() {
	l := s.r.run
	if l == nil || l.Start == nil || l.open() == nil || l.LastDone == l.sum.ended() || s.r.Now-l.LastEvent < progressEvery {
		return
	}
	l.LastEvent, l.LastDone = s.r.Now, l.sum.ended()
	s.event(codecs.TypeBatchProgress, "")
}

// reject answers an input that changes nothing: loudly, as a dead letter with the reason.
func (s *step) reject(reason string) {
	s.audit().Unexpected++
	s.out = append(s.out, codecs.Message{Topic: codecs.TopicDeadLetter, Key: s.r.Batch, Type: codecs.TypeDeadLetter, Due: true,
		Trace: s.ev.Traceparent,
		Data:  &codecs.DeadLetter{Reason: s.ev.Type + ": " + reason, Topic: codecs.TopicControl, Partition: s.ev.Partition, Offset: s.off}})
}

// mark is what a change of shows in the status topic.
type mark struct {
	run     string
	state   codecs.State_Code
	paused  bool
	version uint64
}

func (r *Row) mark() mark {
	if r.run == nil {
		return mark{}
	}
	return mark{r.run.Run, r.run.State, r.run.Paused, r.Version}
}

// announce writes the status record when what it shows has changed.
func (s *step) announce(before mark) {
	if s.r.mark() == before || s.r.run == nil {
		return
	}
	if s.r.run.Start != nil {
		s.out = append(s.out, s.r.status(false))
	}
}

// Status is the batch's record in the status topic; it is worth repeating while the batch is open.
func (m *Machine) Status(row codecs.Row, quarantined bool) (codecs.Message, bool) {
	r := row.(*Row)
	if r.run == nil {
		return codecs.Message{Topic: codecs.TopicStatus, Key: r.Batch, Type: codecs.TypeBatchStatus,
			Data: &codecs.BatchStatus{Quarantined: quarantined}}, quarantined
	}
	open := r.run.open() != nil && r.run.Start != nil
	if !open && !quarantined {
		return codecs.Message{}, false // a take-over asks for every row
	}
	return r.status(quarantined), true
}

func (r *Row) status(quarantined bool) codecs.Message {
	l := r.run
	d := &codecs.BatchStatus{Run: l.Run, State: l.State, Paused: l.Paused, Policy: l.Policy, Deadlines: l.Deadlines,
		Round: l.round(), Topology: l.Start.GetTopology(), Quarantined: quarantined, Mode: l.Start.GetMode()}
	return codecs.Message{Topic: codecs.TopicStatus, Key: r.Batch, Type: codecs.TypeBatchStatus, Data: clone(d)}
}

// pending collects indexes of one feeder and outcome for the next cut.
type pending struct {
	feeder  uint32
	outcome codecs.Outcome_Code

	set    *roaring.Bitmap
	lo, hi uint64 // the last range, not in set yet
}

// collectFresh notes tasks that became terminal, for one subjobs.completed per feeder and cut.
func (r *Row) collectFresh(feeder uint32, o codecs.Outcome_Code, lo, hi uint32) {
	p := r.pendingOf(feeder, o)
	switch {
	case p.hi == uint64(lo) && p.hi > p.lo:
		p.hi = uint64(hi) + 1
	default:
		p.flush()
		p.lo, p.hi = uint64(lo), uint64(hi)+1
	}
}

func (r *Row) pendingOf(feeder uint32, o codecs.Outcome_Code) *pending {
	for _, p := range r.sets {
		if p.feeder == feeder && p.outcome == o {
			return p
		}
	}
	p := &pending{feeder: feeder, outcome: o, set: roaring.New()}
	r.sets = append(r.sets, p)
	return p
}

func (p *pending) flush() {
	if p.hi == p.lo+1 {
		p.set.Add(uint32(p.lo))
	} else if p.hi > p.lo {
		p.set.AddRange(p.lo, p.hi)
	}
	p.lo, p.hi = 0, 0
}

const maxTimings = 256

func (r *Row) timing(t *codecs.Timing) {
	if r.done == nil {
		r.done = &codecs.SubjobsCompleted{}
	}
	if len(r.done.Timings) < maxTimings {
		r.done.Timings = append(r.done.Timings, clone(t))
	}
}

// Cut appends what a row tells once per cut, however many events it took: the tasks that became terminal, feeder by
// feeder. The runtime calls it before the row is encoded; nothing of it is stored in the row.
func (m *Machine) Cut(row codecs.Row, out []codecs.Message) []codecs.Message {
	r := row.(*Row)
	l := r.run
	sets, done, attempts := r.sets, r.done, r.attempts
	r.sets, r.done, r.attempts = nil, nil, 0
	if l == nil || l.Start == nil || len(sets) == 0 {
		return out
	}
	slices.SortFunc(sets, func(a, b *pending) int {
		return cmp.Or(cmp.Compare(a.feeder, b.feeder), cmp.Compare(a.outcome, b.outcome))
	})
	var d *codecs.SubjobsCompleted
	for _, p := range sets {
		if d == nil || d.Feeder != p.feeder {
			d = &codecs.SubjobsCompleted{Run: l.Run, Round: l.round(), Feeder: p.feeder, Owner: l.Start.Owner, Queue: l.Start.Queue,
				Attempts: attempts}
			if done != nil {
				d.Timings = done.Timings
			}
			done, attempts = nil, 0 // of all feeders, told once
			out = append(out, codecs.Message{Topic: codecs.TopicEvents, Key: r.Batch, Type: codecs.TypeSubjobsCompleted, Data: d})
		}
		d.Items = append(d.Items, p.item())
	}
	return out
}

// item names the collected tasks, in the shortest form.
func (p *pending) item() *codecs.ReportItem {
	p.flush()
	it := &codecs.ReportItem{Outcome: p.outcome, First: p.set.Minimum()}
	if n := p.set.GetCardinality(); n > 1 {
		last := p.set.Maximum()
		if uint64(last-it.First)+1 == n {
			it.Last = &last
		} else {
			p.set.RunOptimize()
			it.First = 0
			it.Bitmap, _ = p.set.ToBytes()
		}
	}
	return it
}
