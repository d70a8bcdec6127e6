package stage

import (
	"maps"
	"sync"

	"github.com/quiesce/quiesce/codecs"
)

// Counters counts what a stage did since the process started, repeats after a rebalance or crash included. Safe for
// concurrent use; the zero value is ready.
type Counters struct {
	mu    sync.Mutex
	units map[UnitName]Count
}

// UnitName is a unit as a map key.
type UnitName struct {
	Stage, Topic string
	Partition    int32
}

// Count is what happened in one unit.
type Count struct {
	Consumed   uint64 // data records of batches handled
	Failed     uint64 // of these, to the dead letter
	Skipped    uint64
	Produced   uint64
	Retries    uint64
	Untagged   uint64 // records that belong to no batch
	Markers    uint64 // END markers read
	Ended      uint64 // batches ended
	Committed  int64  // position of the last commit
	DeadLetter uint64
}

func (c *Counters) add(u *codecs.Unit, change func(*Count)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.units == nil {
		c.units = map[UnitName]Count{}
	}
	name := UnitName{u.Stage, u.Topic, int32(u.Partition)}
	n := c.units[name]
	change(&n)
	c.units[name] = n
}

// Units returns a copy of all counts.
func (c *Counters) Units() map[UnitName]Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.units)
}

// Total returns the sum over all units.
func (c *Counters) Total() Count {
	var t Count
	for _, n := range c.Units() {
		t.merge(n)
	}
	return t
}

// count adds one record.
func (r *Result) count(c *Count, tagged bool) {
	if tagged {
		c.Consumed++
	} else {
		c.Untagged++
	}
	switch r.verdict.outcome {
	case codecs.Failed:
		c.Failed++
		c.DeadLetter++
	case codecs.Skipped:
		c.Skipped++
	}
	c.Produced += uint64(len(r.verdict.outputs))
	c.Retries += uint64(r.verdict.retries)
}

func (c *Count) merge(n Count) {
	c.Consumed += n.Consumed
	c.Failed += n.Failed
	c.Skipped += n.Skipped
	c.Produced += n.Produced
	c.Retries += n.Retries
	c.Untagged += n.Untagged
	c.Markers += n.Markers
	c.Ended += n.Ended
	c.DeadLetter += n.DeadLetter
	c.Committed = max(c.Committed, n.Committed)
}
