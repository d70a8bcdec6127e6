package batch

import (
	"fmt"

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
