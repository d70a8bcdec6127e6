package table

import (
	"slices"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/processors/batch"
)

const (
	wordPending = "pending"
	wordRunning = "running"

	maxChunks = 64 // looked at for one page
)

// chunk decodes a chunk's row; nil = there is none.
func (v *View) chunk(r *record, ref batch.ChunkRef) (*batch.Chunk, error) {
	b, ok := v.parts[r.partition].chunks[ref.Key]
	if !ok {
		return nil, nil
	}
	c, err := machine.LoadPart(ref.Key, b)
	if err != nil {
		return nil, err
	}
	return c.(*batch.Chunk), nil
}

// word is how a task is shown.
func word(t batch.Task) string {
	switch {
	case t.Outcome != codecs.Outcome_unspecified:
		return t.Outcome.String()
	case t.Running:
		return wordRunning
	}
	return wordPending
}

// Tasks returns tasks by index. It looks at a bounded number of chunks, so a page may be short before the end.
func (v *View) Tasks(id string, outcomes []string, from uint32, n int) (sidecar.TaskPage, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	r, err := v.find(id)
	if err != nil {
		return sidecar.TaskPage{}, err
	}
	s, _ := r.row.Snapshot()
	page := sidecar.TaskPage{Run: s.Run}
	refs := r.row.Chunks(0, from, maxChunks+1)
	for i, ref := range refs {
		if i == maxChunks {
			page.More, page.Next = true, ref.First
			break
		}
		c, err := v.chunk(r, ref)
		if err != nil {
			return page, err
		}
		r.row.Tasks(ref, c, from, func(t batch.Task) bool {
			w := word(t)
			if len(outcomes) > 0 && !slices.Contains(outcomes, w) {
				return true
			}
			if len(page.Tasks) == n {
				page.More, page.Next = true, t.Index
				return false
			}
			page.Tasks = append(page.Tasks, v.task(id, s.Run, t, w))
			return true
		})
		if page.More {
			break
		}
	}
	return page, nil
}

// task describes one task, with the reason that the outcomes topic has.
func (v *View) task(id, run string, b batch.Task, w string) api.Task {
	t := api.Task{Index: b.Index, Outcome: w}
	if o := v.reason(id, run, b.Index); o != nil && o.Outcome.String() == w {
		t.Reason, t.Attempt, t.Round, t.Reporter, t.At = o.Reason, o.Attempt, o.Round, o.Reporter, api.Int64(o.At)
	}
	return t
}

// reason finds what was said of a task: for itself, or for the range that it is in.
func (v *View) reason(id, run string, index uint32) *codecs.TaskOutcome {
	if o := v.reasons[codecs.OutcomeKey(id, run, index)]; o != nil {
		return o
	}
	for _, o := range v.ranges[id] {
		if o.run == run && o.Index <= index && index <= o.Last {
			return o.TaskOutcome
		}
	}
	return nil
}

// Missing returns what a batch waits for: ranges of tasks without outcome, or units without END.
func (v *View) Missing(id string, from uint32, n int) (sidecar.MissingPage, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	r, err := v.find(id)
	if err != nil {
		return sidecar.MissingPage{}, err
	}
	s, _ := r.row.Snapshot()
	page := sidecar.MissingPage{Missing: api.Missing{Batch: id, Run: s.Run, Sealed: s.Sealed}}
	if s.Start == nil || s.State.Terminal() {
		return page, nil
	}
	if len(s.Start.Units) > 0 {
		for _, u := range r.row.MissingUnits() {
			if len(page.Units) < n {
				page.Units = append(page.Units, api.Unit{Stage: u.Stage, Topic: u.Topic, Partition: u.Partition})
			}
		}
		return page, nil
	}
	page.Count = s.Counts.Pending + s.Counts.Running
	refs := r.row.Chunks(0, from, maxChunks+1)
	for i, ref := range refs {
		if ref.Ended == ref.Tasks {
			continue
		}
		if i == maxChunks || len(page.Ranges) == n {
			page.More, page.Next = true, max(ref.First, from)
			break
		}
		c, err := v.chunk(r, ref)
		if err != nil {
			return page, err
		}
		if !v.missingIn(r, s.Start, ref, c, from, n, &page) {
			break
		}
	}
	return page, nil
}

// missingIn adds the ranges of one chunk; false = the page is full.
func (v *View) missingIn(r *record, start *codecs.BatchStart, ref batch.ChunkRef, c *batch.Chunk, from uint32, n int, page *sidecar.MissingPage) bool {
	ok := true
	r.row.Missing(ref, c, from, func(s batch.Span) bool {
		if len(page.Ranges) == n {
			page.More, page.Next, ok = true, s.First, false
			return false
		}
		rg := api.Range{First: s.First, Last: s.Last, Running: s.Running}
		for _, l := range s.OpenLegs {
			if int(l) < len(start.Legs) {
				rg.LastSeen = append(rg.LastSeen, api.Leg{Stage: start.Legs[l].Stage, Topic: start.Legs[l].Topic})
			}
		}
		if last := len(page.Ranges) - 1; last >= 0 && page.Ranges[last].Last+1 == rg.First && same(page.Ranges[last], rg) {
			page.Ranges[last].Last = rg.Last
			return true
		}
		page.Ranges = append(page.Ranges, rg)
		return true
	})
	return ok
}

func same(a, b api.Range) bool { return a.Running == b.Running && slices.Equal(a.LastSeen, b.LastSeen) }
