package markers

import (
	"cmp"
	"fmt"
)

// Batch names one round of one run: what ENDs.
type Batch struct {
	ID    string
	Run   string
	Round uint32 // 1, 2, ...
}

// String is <batch>/<run>/<round>.
func (b Batch) String() string { return fmt.Sprintf("%s/%s/%d", b.ID, b.Run, b.Round) }

func compare(a, b Batch) int {
	return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Run, b.Run), cmp.Compare(a.Round, b.Round))
}

// Result is what became of one data record.
type Result struct {
	Failed   bool              // it ended in the dead letter
	Produced map[string]uint64 // records sent, by topic
}

// Counts add up the results of a batch in a unit.
type Counts struct {
	Consumed uint64
	Failed   uint64
	Produced map[string]uint64
}

func (c *Counts) add(r Result) {
	c.Consumed++
	if r.Failed {
		c.Failed++
	}
	for topic, n := range r.Produced {
		if c.Produced == nil {
			c.Produced = map[string]uint64{}
		}
		c.Produced[topic] += n
	}
}

// entry is what a unit knows of a batch.
type entry struct {
	plan   *plan
	seen   bits // by number of the upstream unit
	marks  int  // END markers seen, repeats included
	counts Counts
	ended  bool
	order  uint64 // of ended ones: the older the smaller
}

func (e *entry) aligned(m Mutants) bool {
	if e.ended || e.plan.required == 0 { // an ended one has no plan after a restart
		return false
	}
	switch {
	case m.ForwardFirst:
		return e.marks > 0
	case m.CountEnds:
		return e.marks >= e.plan.required
	}
	return e.seen.count() == e.plan.required
}
