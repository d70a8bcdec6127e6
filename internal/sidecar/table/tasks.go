package table

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

const (
	wordPending = "pending"
	wordRunning = "running"
)

// Tasks returns tasks by index.
func (v *View) Tasks(id string, outcomes []string, from uint32, n int) (sidecar.TaskPage, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	r, err := v.find(id)
	if err != nil {
		return sidecar.TaskPage{}, err
	}
	p := r.row.View()
	page := sidecar.TaskPage{Run: p.Run}
	by, running := r.row.Tasks()
	if by == nil {
		return page, nil
	}
	wanted := func(word string) bool { return len(outcomes) == 0 || slices.Contains(outcomes, word) }
	choice, ended := roaring.New(), roaring.New()
	for o, set := range by {
		ended.Or(set)
		if wanted(codecs.Outcome_Code(o).String()) {
			choice.Or(set)
		}
	}
	if wanted(wordRunning) {
		choice.Or(running)
	}
	if wanted(wordPending) {
		open := roaring.Or(ended, running)
		open.Flip(0, uint64(p.Total))
		open.RemoveRange(uint64(p.Total), 1<<32)
		choice.Or(open)
	}
	it := choice.Iterator()
	it.AdvanceIfNeeded(from)
	for it.HasNext() {
		i := it.Next()
		if len(page.Tasks) == n {
			page.More, page.Next = true, i
			break
		}
		page.Tasks = append(page.Tasks, v.task(id, p, by, running, i))
	}
	return page, nil
}

// task describes one task. In the mode markers an open batch knows only the failures that were reported.
func (v *View) task(id string, p *codecs.BatchRow, by []*roaring.Bitmap, running *roaring.Bitmap, i uint32) api.Task {
	t := api.Task{Index: i, Outcome: wordPending}
	if running.Contains(i) {
		t.Outcome = wordRunning
	}
	for o, set := range by {
		if set.Contains(i) {
			t.Outcome = codecs.Outcome_Code(o).String()
		}
	}
	if o := v.reasons[codecs.OutcomeKey(id, p.Run, i)]; o != nil && o.Outcome.String() == t.Outcome {
		t.Reason, t.Attempt, t.Round, t.Reporter, t.At = o.Reason, o.Attempt, o.Round, o.Reporter, api.Int64(o.At)
	}
	return t
}

// Missing returns what a batch waits for: ranges of tasks without outcome, or units without END.
func (v *View) Missing(id string, from uint32, n int) (sidecar.MissingPage, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	r, err := v.find(id)
	if err != nil {
		return sidecar.MissingPage{}, err
	}
	p := r.row.View()
	page := sidecar.MissingPage{Missing: api.Missing{Batch: id, Run: p.Run, Sealed: p.SealedAt > 0}}
	by, running := r.row.Tasks()
	if by == nil || p.State.Terminal() {
		return page, nil
	}
	if len(p.Units) > 0 {
		for i, u := range p.Units {
			for part := range u.Set.Partitions {
				if !r.row.Reported(i).Contains(part) && len(page.Units) < n {
					page.Units = append(page.Units, api.Unit{Stage: u.Set.Stage, Topic: u.Set.Topic, Partition: part})
				}
			}
		}
		return page, nil
	}
	open := roaring.New()
	for _, set := range by {
		open.Or(set)
	}
	end := uint64(p.Total)
	if !page.Sealed && !open.IsEmpty() {
		end = uint64(open.Maximum()) + 1
	}
	open.Flip(0, end)
	open.RemoveRange(end, 1<<32)
	page.Count = uint32(open.GetCardinality())
	legs := r.row.Open()
	for it := open.Iterator(); it.HasNext(); {
		it.AdvanceIfNeeded(from)
		if !it.HasNext() {
			break
		}
		if len(page.Ranges) == n {
			page.More, page.Next = true, it.PeekNext()
			break
		}
		rg := nextRange(it, running)
		for l, leg := range p.Legs {
			if !legs[l].Contains(rg.First) {
				rg.LastSeen = append(rg.LastSeen, api.Leg{Stage: leg.Stage, Topic: leg.Topic})
			}
		}
		page.Ranges = append(page.Ranges, rg)
	}
	return page, nil
}

// nextRange takes the longest run of indexes that are all started, or all not.
func nextRange(it roaring.IntPeekable, running *roaring.Bitmap) api.Range {
	first := it.Next()
	rg := api.Range{First: first, Last: first, Running: running.Contains(first)}
	for it.HasNext() && it.PeekNext() == rg.Last+1 && running.Contains(rg.Last+1) == rg.Running {
		rg.Last = it.Next()
	}
	return rg
}
