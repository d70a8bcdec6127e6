package batch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quiesce/quiesce/codecs"
)

// end takes the END of one unit. The set of units is compared with the one that START froze; a unit counts once.
func (s *step) end(d *codecs.BatchEnd) {
	l := s.started(d.Run)
	if l == nil {
		return
	}
	u := d.Unit
	switch {
	case !l.marked():
		s.reject(fmt.Sprintf("run %s is in mode %s", l.Run, l.Start.Mode))
	case !s.m.off.anyUnit && !declared(l.Start, u):
		s.audit().Unexpected++
	case l.open() == nil || max(d.Round, 1) != l.round():
		s.audit().Late++
	case !l.addEnd(&codecs.UnitEnd{Unit: unitName(u), Consumed: d.Consumed, Failed: d.Failed, At: s.r.Now}):
		if s.m.off.endsCounted {
			l.Ends = append(l.Ends, &codecs.UnitEnd{Unit: unitName(u)})
		}
		s.audit().Duplicates++
		s.evaluate()
	default:
		l.LastProgress = s.r.Now
		s.evaluate()
	}
}

func declared(st *codecs.BatchStart, u *codecs.Unit) bool {
	for _, set := range st.Units {
		if set.Stage == u.GetStage() && set.Topic == u.GetTopic() && u.GetPartition() < set.Partitions {
			return true
		}
	}
	return false
}

func unitName(u *codecs.Unit) string { return fmt.Sprintf("%s/%s/%d", u.Stage, u.Topic, u.Partition) }

// addEnd notes that a unit has reported; false = it had before. The units stay in order, so that equal sets are equal
// rows.
func (l *life) addEnd(e *codecs.UnitEnd) bool {
	i, have := slices.BinarySearchFunc(l.Ends, e.Unit, func(e *codecs.UnitEnd, unit string) int { return strings.Compare(e.Unit, unit) })
	if have {
		return false
	}
	l.Ends = slices.Insert(l.Ends, i, e)
	l.endsCost += l.endCost(e)
	return true
}

// packEnds writes the units that reported as columns, by their place in START: names would not fit a row.
func (l *life) packEnds() {
	if len(l.Ends) == 0 {
		return
	}
	by := make(map[string]*codecs.UnitEnd, len(l.Ends))
	for _, e := range l.Ends {
		by[e.Unit] = e
	}
	place, next := uint32(0), uint32(0)
	l.eachUnit(func(unit string) {
		if e := by[unit]; e != nil {
			l.EndUnits = append(l.EndUnits, place-next)
			l.EndConsumed = append(l.EndConsumed, e.Consumed)
			l.EndFailed = append(l.EndFailed, e.Failed)
			l.EndAt = append(l.EndAt, e.At-l.StartedAt)
			next = place + 1
			delete(by, unit)
		}
		place++
	})
}

func (l *life) unpackEnds() error {
	n := len(l.EndUnits)
	if len(l.EndConsumed) != n || len(l.EndFailed) != n || len(l.EndAt) != n || n > 0 && l.units() > codecs.MaxUnits {
		return errEnds
	}
	if n == 0 {
		return nil
	}
	place, i := uint32(0), 0
	due := uint64(l.EndUnits[0])
	l.eachUnit(func(unit string) {
		if i < n && uint64(place) == due {
			l.addEnd(&codecs.UnitEnd{Unit: unit, Consumed: l.EndConsumed[i], Failed: l.EndFailed[i], At: l.StartedAt + l.EndAt[i]})
			if i++; i < n {
				due += 1 + uint64(l.EndUnits[i])
			}
		}
		place++
	})
	if len(l.Ends) != n {
		return errEnds
	}
	l.unpacked()
	return nil
}

var errEnds = errors.New("units that reported do not decode")

// eachUnit calls fn for the units of START, in order.
func (l *life) eachUnit(fn func(unit string)) {
	for _, set := range l.Start.GetUnits() {
		for p := range set.Partitions {
			fn(unitName(&codecs.Unit{Stage: set.Stage, Topic: set.Topic, Partition: p}))
		}
	}
}
