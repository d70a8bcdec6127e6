package batch

import (
	"slices"
	"sort"

	"github.com/quiesce/quiesce/codecs"
)

// Snapshot is what a reader may know of a batch. It shares memory with the row and must not be changed.
type Snapshot struct {
	Batch         string
	Run           string
	State         codecs.State_Code
	PreviousState codecs.State_Code
	Paused        bool
	Round         uint32
	Sealed        bool
	Total         uint32 // N, where Sealed
	Counts        *codecs.Counts
	Audit         *codecs.Audit
	Version       uint64
	Start         *codecs.BatchStart // nil = not started
	Policy        *codecs.Policy     // in force
	Deadlines     *codecs.Deadlines  // in force, absolute
	Window        uint32             // in force
	StartedAt     int64              // ms
	SealedAt      int64              // ms
	EndedAt       int64              // ms
	LastProgress  int64              // ms
	Now           int64              // ms, of the row
	Rate          float64            // tasks per second
	ETA           int64              // ms; 0 = unknown
	Reason        string
	Position      string
	Causes        []string
	Feeders       []*codecs.FeederRow
	Ends          []*codecs.UnitEnd // mode markers: the units that reported
	Released      uint32
	ParkedRun     string // a newer run whose START has not come
	ParkedReports uint32
	PastRuns      []string
	Answers       []*codecs.CommandAnswer
}

// Snapshot returns what a reader may know; false for a row without a run.
func (r *Row) Snapshot() (Snapshot, bool) {
	l := r.run
	if l == nil {
		return Snapshot{Batch: r.Batch, Answers: r.Answers, Audit: r.Audit, Version: r.Version, Now: r.Now}, false
	}
	s := Snapshot{Batch: r.Batch, Run: l.Run, State: l.State, PreviousState: l.PreviousState, Paused: l.Paused, Round: l.round(),
		Sealed: l.sealed() || l.Final != nil && l.SealedAt > 0, Counts: l.tally(), Audit: r.Audit, Version: r.Version, Start: l.Start,
		Policy: l.Policy, Deadlines: l.Deadlines, Window: l.Window, StartedAt: l.StartedAt, SealedAt: l.SealedAt, EndedAt: l.EndedAt,
		LastProgress: l.LastProgress, Now: r.Now, Reason: l.Reason, Position: l.Position, Causes: l.Causes, Feeders: l.Feeders,
		Ends: l.Ends, Released: l.Released, PastRuns: r.Past, Answers: r.Answers}
	s.Total = s.Counts.Total
	s.Rate, s.ETA = l.pace(r.Now)
	if r.next != nil {
		s.ParkedRun, s.ParkedReports = r.next.Run, r.next.Parked
	}
	return s, true
}

// MissingUnits returns the units that have not reported END, in order.
func (r *Row) MissingUnits() []*codecs.Unit {
	if r.run == nil || !r.run.marked() {
		return nil
	}
	have := map[string]bool{}
	for _, e := range r.run.Ends {
		have[e.Unit] = true
	}
	var out []*codecs.Unit
	for _, set := range r.run.Start.Units {
		for p := range set.Partitions {
			if u := (&codecs.Unit{Stage: set.Stage, Topic: set.Topic, Partition: p}); !have[unitName(u)] {
				out = append(out, u)
			}
		}
	}
	return out
}

// Span is a range of tasks of one feeder, [First, Last], that are in the same way without outcome.
type Span struct {
	Feeder      uint32
	First, Last uint32
	Running     bool
	OpenLegs    []uint32 // legs that have not reported, where there are several
}

// ChunkRef names a chunk of the current run.
type ChunkRef struct {
	Key    string // of the table
	Feeder uint32
	First  uint32 // index of its first task
	Tasks  uint32 // how many of its indexes are tasks; ChunkSize where N is not known
	Ended  uint32 // of them, as the header last saw it
}

// Chunks returns the chunks of the current run from a task on, in order, at most limit: those that hold tasks, whether
// their rows exist or not; where N is not known, those that exist.
func (r *Row) Chunks(feeder, from uint32, limit int) []ChunkRef {
	l := r.run
	if l == nil || l.Final != nil {
		return nil
	}
	var out []ChunkRef
	add := func(id, tasks uint32) {
		ref := ChunkRef{Key: codecs.ChunkKey(r.Batch, l.Run, id), Feeder: id >> 16, First: id << 16, Tasks: tasks}
		if c := l.chunks[id]; c != nil {
			ref.Ended = c.ended()
		}
		out = append(out, ref)
	}
	if !l.sealed() {
		ids := l.ids()
		for _, id := range ids[sort.Search(len(ids), func(i int) bool { return ids[i] >= feeder<<16|from>>16 }):] {
			if len(out) == limit {
				break
			}
			add(id, codecs.ChunkSize)
		}
		return out
	}
	for f := feeder; f < uint32(len(l.Feeders)); f++ {
		for at := uint64(from) &^ 0xffff; at < uint64(l.Feeders[f].Total); at += codecs.ChunkSize {
			if len(out) == limit {
				return out
			}
			add(f<<16|uint32(at>>16), uint32(min(codecs.ChunkSize, uint64(l.Feeders[f].Total)-at)))
		}
		from = 0
	}
	return out
}

// Task is one task as its chunk knows it.
type Task struct {
	Feeder  uint32
	Index   uint32
	Outcome codecs.Outcome_Code // unspecified = none
	Running bool
}

// Tasks calls fn for the tasks of a chunk from an index on, in order, until it returns false. c is the row of the chunk,
// or nil when there is none.
func (r *Row) Tasks(ref ChunkRef, c *Chunk, from uint32, fn func(Task) bool) {
	l := r.run
	for i := uint32(0); i < ref.Tasks; i++ {
		index := ref.First + i
		if index < from {
			continue
		}
		t := Task{Feeder: ref.Feeder, Index: index}
		t.Outcome, t.Running = l.taskOf(c, uint(i))
		if !l.sealed() && t.Outcome == codecs.Outcome_unspecified && !t.Running {
			continue // not known to exist
		}
		if !fn(t) {
			return
		}
	}
}

// taskOf reads a task as of the current round; what a closed round left open has the outcome that it was closed as.
func (l *life) taskOf(c *Chunk, i uint) (o codecs.Outcome_Code, running bool) {
	if c != nil && c.settled(i, l.round()) {
		o, _ = c.outcome(i)
		return o, false
	}
	switch {
	case l.ClosedAs != codecs.Outcome_unspecified:
		return l.ClosedAs, false
	case l.marked() && len(l.Ends) == l.units():
		return codecs.Unknown, false
	}
	return codecs.Outcome_unspecified, c != nil && c.round == l.round() && c.started.Test(i)
}

// Missing calls fn with the ranges of a chunk's tasks that have no outcome, in order, from an index on, until it returns
// false. c is the row of the chunk, or nil when there is none.
func (r *Row) Missing(ref ChunkRef, c *Chunk, from uint32, fn func(Span) bool) {
	var s *Span
	more := true
	flush := func() {
		if s != nil && more {
			more = fn(*s)
		}
		s = nil
	}
	r.Tasks(ref, c, from, func(t Task) bool {
		if t.Outcome != codecs.Outcome_unspecified {
			flush()
			return more
		}
		legs := r.openLegs(c, uint(t.Index&0xffff))
		if s != nil && s.Running == t.Running && slices.Equal(s.OpenLegs, legs) {
			s.Last = t.Index
			return true
		}
		flush()
		s = &Span{t.Feeder, t.Index, t.Index, t.Running, legs}
		return more
	})
	flush()
}

// openLegs are the legs that have said nothing of a task in the current round.
func (r *Row) openLegs(c *Chunk, i uint) (open []uint32) {
	legs := r.run.Start.GetLegs()
	if len(legs) < 1 {
		return nil
	}
	for l := range legs {
		if c == nil || l >= len(c.legs) || !c.legs[l].done.Test(i) || r.run.round() > c.round && reopened[c.legs[l].outcome(i)] {
			open = append(open, uint32(l))
		}
	}
	return open
}
