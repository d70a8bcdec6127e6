package markers

import (
	"fmt"
	"maps"

	"github.com/quiesce/quiesce/codecs"
)

// State is the unit as a row: the same unit always gives the same one.
func (u *Unit) State() *codecs.UnitState {
	s := &codecs.UnitState{Position: u.position}
	plans := map[string]uint32{}
	for _, b := range u.sorted() {
		e := u.batches[b]
		row := &codecs.UnitBatch{Batch: b.ID, Run: b.Run, Round: b.Round, Ended: e.ended}
		if !e.ended {
			n, ok := plans[e.plan.text]
			if !ok {
				n = uint32(len(s.Plans))
				plans[e.plan.text], s.Plans = n, append(s.Plans, e.plan.text)
			}
			row.Plan, row.Seen = n, append([]byte(nil), e.seen...)
			row.Consumed, row.Failed, row.Produced = e.counts.Consumed, e.counts.Failed, maps.Clone(e.counts.Produced)
			if u.cfg.Mutants.Volatile {
				row.Seen = nil
			}
		}
		s.Batches = append(s.Batches, row)
	}
	return s
}

// Load makes the unit that a state describes. The state is kept by the unit.
func Load(cfg Config, s *codecs.UnitState) (*Unit, error) {
	u, err := New(cfg, s.Position)
	if err != nil {
		return nil, err
	}
	for _, row := range s.Batches {
		b := Batch{ID: row.Batch, Run: row.Run, Round: row.Round}
		if row.Ended {
			u.ended++
			u.batches[b] = &entry{ended: true, order: u.ended}
			continue
		}
		if int(row.Plan) >= len(s.Plans) {
			return nil, fmt.Errorf("markers: state of %s: batch %s has plan %d of %d", cfg.Unit.Path(), b, row.Plan, len(s.Plans))
		}
		e := &entry{plan: u.plan(s.Plans[row.Plan]), seen: row.Seen,
			counts: Counts{Consumed: row.Consumed, Failed: row.Failed, Produced: row.Produced}}
		e.marks = e.seen.count()
		u.batches[b] = e
		if e.aligned(cfg.Mutants) { // cannot be in a state that Cut made, but nothing may be lost
			u.due = append(u.due, b)
		}
	}
	return u, nil
}
