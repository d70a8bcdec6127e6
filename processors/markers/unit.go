package markers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/topology"
)

// MaxEnded bounds the names of ended batches that a unit keeps.
const MaxEnded = 256

// Config says which unit it is.
type Config struct {
	// Unit is the stage, its input topic and the partition.
	Unit *codecs.Unit
	// Topologies are the declarations whose batches may be open, the current one first.
	Topologies []*topology.Topology
	// Counts are the partition counts of the topics now, for batches that pinned none.
	Counts topology.Partitions
	// Mutants switch wrong forms on, in tests.
	Mutants Mutants
}

// Unit is the machine of one unit. It is not safe for concurrent use.
type Unit struct {
	cfg      Config
	unpinned string // plan of batches that pinned none
	plans    map[string]*plan
	batches  map[Batch]*entry
	position int64 // next input offset
	due      []Batch
	ended    uint64 // batches ended so far
	unknown  uint64 // markers of sources that are not upstream of the unit
}

// New makes the empty state of a unit whose next record has the given offset.
func New(cfg Config, position int64) (*Unit, error) {
	if len(cfg.Topologies) == 0 || cfg.Unit == nil {
		return nil, errors.New("markers: a unit needs a topology and a name")
	}
	t := cfg.Topologies[0]
	if !slices.Contains(t.Stages[cfg.Unit.Stage].In, cfg.Unit.Topic) {
		return nil, fmt.Errorf("markers: topology %s: stage %q does not read topic %q", t.Name, cfg.Unit.Stage, cfg.Unit.Topic)
	}
	now := codecs.Plan{Mode: topology.ModeMarkers, Topology: t.Name, Version: t.Version, Feeders: 1, Partitions: cfg.Counts}
	return &Unit{cfg: cfg, unpinned: now.String(), plans: map[string]*plan{}, batches: map[Batch]*entry{}, position: position}, nil
}

// Position is the offset of the next record that the unit wants.
func (u *Unit) Position() int64 { return u.position }

// Data takes a data record of a batch that was handled with the given result. plan is the record's quiesce-mode header.
func (u *Unit) Data(position int64, b Batch, plan string, r Result) {
	u.position = position + 1
	if e := u.entry(b, plan); !e.ended {
		e.counts.add(r)
	}
}

// End takes an END marker. It reports whether a batch is due now: the next Cut will end it.
func (u *Unit) End(position int64, b Batch, plan string, from *codecs.Unit) bool {
	u.position = position + 1
	e := u.entry(b, plan)
	if e.ended {
		return false
	}
	n, ok := e.plan.number(from)
	if !ok {
		u.unknown++
		return false
	}
	before := e.aligned(u.cfg.Mutants)
	e.seen.add(n)
	e.marks++
	if !before && e.aligned(u.cfg.Mutants) {
		u.due = append(u.due, b)
		return true
	}
	return false
}

// Pass takes a record that belongs to no batch of the cascade.
func (u *Unit) Pass(position int64) { u.position = position + 1 }

// Drop forgets a run up to a round that the controller has closed.
func (u *Unit) Drop(batch, run string, round uint32) {
	for b := range u.batches {
		if b.ID == batch && b.Run == run && b.Round <= round {
			delete(u.batches, b)
		}
	}
	u.due = slices.DeleteFunc(u.due, func(b Batch) bool { return u.batches[b] == nil })
}

// Knows says whether the unit has met a batch and not dropped it.
func (u *Unit) Knows(b Batch) bool { return u.batches[b] != nil }

func (u *Unit) entry(b Batch, text string) *entry {
	if e, ok := u.batches[b]; ok {
		return e
	}
	if u.cfg.Mutants.Unpinned {
		text = ""
	}
	e := &entry{plan: u.plan(text)}
	u.batches[b] = e
	return e
}

// Due says whether a batch waits for the next cut.
func (u *Unit) Due() bool { return len(u.due) > 0 }

// Unknown is the number of markers from sources that are not upstream of the unit in the batch's plan.
func (u *Unit) Unknown() uint64 { return u.unknown }

// Open is what a unit waits for in one batch.
type Open struct {
	Batch    Batch
	Required int
	Seen     int
	Missing  []*codecs.Unit // a sample
	Counts   Counts
}

// Open lists the batches that the unit has met and not ended, in order, with up to max missing sources each.
func (u *Unit) Open(max int) []Open {
	var open []Open
	for b, e := range u.batches {
		if !e.ended {
			open = append(open, Open{Batch: b, Required: e.plan.required, Seen: e.seen.count(),
				Missing: e.plan.missing(e.seen, max), Counts: e.counts})
		}
	}
	slices.SortFunc(open, func(a, b Open) int { return compare(a.Batch, b.Batch) })
	return open
}

// String is one stable line for the position and one for each batch.
func (u *Unit) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s at %d", u.cfg.Unit.Path(), u.position)
	for _, b := range u.sorted() {
		e := u.batches[b]
		if e.ended {
			fmt.Fprintf(&s, "\n  %s ended", b)
			continue
		}
		fmt.Fprintf(&s, "\n  %s %d of %d sources, %d consumed, %d failed", b, e.seen.count(), e.plan.required,
			e.counts.Consumed, e.counts.Failed)
	}
	return s.String()
}

func (u *Unit) sorted() []Batch {
	list := make([]Batch, 0, len(u.batches))
	for b := range u.batches {
		list = append(list, b)
	}
	slices.SortFunc(list, compare)
	return list
}
