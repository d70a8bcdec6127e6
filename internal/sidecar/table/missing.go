package table

import (
	"slices"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/processors/batch"
)

// Missing returns what a batch waits for: ranges of tasks without outcome, or units without END. An ended batch waits for
// nothing. Before the seal only the gaps among the tasks that were reported are known. Chunks that have all outcomes cost
// nothing, so the cost is that of the page, whatever the size of the batch.
func (v *View) Missing(id string, from sidecar.Place, n int) (page sidecar.MissingPage, err error) {
	err = v.read(id, func(m *moment) (err error) {
		page, err = m.missing(id, from, n)
		return err
	})
	return page, err
}

func (m *moment) missing(id string, from sidecar.Place, n int) (page sidecar.MissingPage, err error) {
	s, _ := m.row.Snapshot()
	page.Missing = api.Missing{Batch: id, Run: s.Run, Sealed: s.Sealed}
	if s.Start == nil || s.State.Terminal() {
		return page, nil
	}
	if len(s.Start.Units) > 0 {
		for _, u := range m.row.MissingUnits() {
			if len(page.Units) < n {
				page.Units = append(page.Units, api.Unit{Stage: u.Stage, Topic: u.Topic, Partition: u.Partition})
			}
		}
		return page, nil
	}
	page.Count = s.Counts.Pending + s.Counts.Running
	page.Next, err = m.walk(from, complete, func(ref batch.ChunkRef, c *batch.Chunk, at uint32) (next *sidecar.Place) {
		whole, start := ref, at
		if c == nil { // all of its tasks are alike
			whole.Tasks = 1
			at = ref.First
		}
		m.row.Missing(whole, c, at, func(sp batch.Span) bool {
			if c == nil {
				sp.First, sp.Last = max(sp.First, start), ref.First+ref.Tasks-1
				if sp.First > sp.Last {
					return false
				}
			}
			next = add(&page, rangeOf(ref, sp, s.Start), n)
			return next == nil
		})
		return next
	})
	return page, err
}

func rangeOf(ref batch.ChunkRef, s batch.Span, start *codecs.BatchStart) api.Range {
	rg := api.Range{Feeder: ref.Feeder, First: s.First, Last: s.Last, Running: s.Running}
	for _, l := range s.OpenLegs {
		if int(l) < len(start.Legs) {
			rg.LastSeen = append(rg.LastSeen, api.Leg{Stage: start.Legs[l].Stage, Topic: start.Legs[l].Topic})
		}
	}
	return rg
}

// add puts a range on the page, or onto the one before; on a full page it returns where the next one begins.
func add(page *sidecar.MissingPage, rg api.Range, n int) *sidecar.Place {
	if last := len(page.Ranges) - 1; last >= 0 {
		if l := &page.Ranges[last]; l.Feeder == rg.Feeder && l.Last+1 == rg.First && l.Running == rg.Running && slices.Equal(l.LastSeen, rg.LastSeen) {
			l.Last = rg.Last
			return nil
		}
	}
	if len(page.Ranges) == n {
		return &sidecar.Place{Feeder: rg.Feeder, Index: rg.First}
	}
	page.Ranges = append(page.Ranges, rg)
	return nil
}
