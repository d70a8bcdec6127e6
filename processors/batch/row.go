package batch

import (
	"fmt"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

// Row is the state of a batch id: its current run, and what is known of others.
type Row struct {
	p       *codecs.BatchRow // everything but the sets
	legs    []leg            // at least one once a run has started
	running *roaring.Bitmap
	tasks   sets              // by outcome: tasks that have one on every leg; with one leg they are its sets
	units   []*roaring.Bitmap // partitions that reported, in the order of p.Units
}

// leg is one declared end: its tasks by outcome, and all of them. Most outcomes never occur: their sets are none.
type leg struct {
	by  sets
	all *roaring.Bitmap
}

// sets holds a set of tasks for each outcome.
type sets []*roaring.Bitmap

// none is the empty set of an outcome that has not occurred. It is shared and never written.
var none = roaring.New()

func newSets() sets {
	s := make(sets, outcomes)
	for i := range s {
		s[i] = none
	}
	return s
}

// of is the set of an outcome, to be written.
func (s sets) of(o codecs.Outcome_Code) *roaring.Bitmap {
	if s[o] == none {
		s[o] = roaring.New()
	}
	return s[o]
}

// each calls fn with the sets that may be written: all that are not none.
func (s sets) each(fn func(*roaring.Bitmap)) {
	for _, set := range s {
		if set != none {
			fn(set)
		}
	}
}

const outcomes = int(codecs.Outcome_unknown) + 1

func newRow() *Row { return &Row{p: &codecs.BatchRow{}} }

// View returns the row's fields. They are the row's own: do not change them.
func (r *Row) View() *codecs.BatchRow { return r.p }

// begin makes empty sets for a run.
func (r *Row) begin() {
	r.legs = make([]leg, max(1, len(r.p.Legs)))
	for i := range r.legs {
		r.legs[i] = newLeg()
	}
	r.running = roaring.New()
	r.tasks = r.legs[0].by
	if len(r.legs) > 1 {
		r.tasks = newSets()
	}
	r.units = nil
	for range r.p.Units {
		r.units = append(r.units, roaring.New())
	}
}

func newLeg() leg { return leg{by: newSets(), all: roaring.New()} }

// AppendBinary appends the row as codecs.BatchRow.
func (r *Row) AppendBinary(b []byte) ([]byte, error) {
	r.p.Done = r.p.Done[:0]
	for i := range r.legs {
		for o, set := range r.legs[i].by {
			if set.IsEmpty() {
				continue
			}
			tasks, err := pack(set)
			if err != nil {
				return nil, err
			}
			r.p.Done = append(r.p.Done, &codecs.OutcomeSet{Leg: uint32(i), Outcome: codecs.Outcome_Code(o), Tasks: tasks})
		}
	}
	r.p.Running = nil
	if r.running != nil && !r.running.IsEmpty() {
		var err error
		if r.p.Running, err = pack(r.running); err != nil {
			return nil, err
		}
	}
	for i, set := range r.units {
		var err error
		if r.p.Units[i].Reported, err = pack(set); err != nil {
			return nil, err
		}
	}
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, r.p)
}

func pack(set *roaring.Bitmap) ([]byte, error) {
	set.RunOptimize()
	b, err := set.ToBytes()
	if err != nil {
		return nil, fmt.Errorf("set of tasks: %w", err)
	}
	return b, nil
}

// load reads what AppendBinary wrote.
func load(b []byte) (*Row, error) {
	r := newRow()
	if err := proto.Unmarshal(b, r.p); err != nil {
		return nil, fmt.Errorf("batch row: %w", err)
	}
	if r.p.Run == "" {
		return r, nil
	}
	r.begin()
	for _, d := range r.p.Done {
		if int(d.Leg) >= len(r.legs) || int(d.Outcome) >= outcomes {
			return nil, fmt.Errorf("batch row: no leg %d or outcome %d", d.Leg, d.Outcome)
		}
		l := &r.legs[d.Leg]
		if err := unpack(d.Tasks, l.by.of(d.Outcome)); err != nil {
			return nil, err
		}
		l.all.Or(l.by[d.Outcome])
	}
	if err := unpack(r.p.Running, r.running); err != nil {
		return nil, err
	}
	for i, u := range r.p.Units {
		if err := unpack(u.Reported, r.units[i]); err != nil {
			return nil, err
		}
	}
	if len(r.legs) > 1 {
		r.settle(r.everywhere())
	}
	return r, nil
}

func unpack(b []byte, set *roaring.Bitmap) error {
	if len(b) == 0 {
		return nil
	}
	if err := set.UnmarshalBinary(b); err != nil {
		return fmt.Errorf("batch row: set: %w", err)
	}
	return nil
}

// Tasks returns the tasks with an outcome on every leg, by outcome, and those that were reported as started. They are the
// row's own: do not change them. Nil before START.
func (r *Row) Tasks() (byOutcome []*roaring.Bitmap, running *roaring.Bitmap) {
	return r.tasks, r.running
}

// Reported returns the partitions of the unit set number i that have reported END.
func (r *Row) Reported(i int) *roaring.Bitmap { return r.units[i] }

// Open returns, for each leg, the tasks that have an outcome there.
func (r *Row) Open() []*roaring.Bitmap {
	var out []*roaring.Bitmap
	for i := range r.legs {
		out = append(out, r.legs[i].all)
	}
	return out
}

// String is one stable line.
func (r *Row) String() string {
	p := r.p
	c := r.Counts()
	s := fmt.Sprintf("run=%s round=%d %s mode=%s total=%d pending=%d running=%d ok=%d failed=%d skipped=%d cancelled=%d timed_out=%d lost=%d unknown=%d",
		p.Run, p.Round, p.State, p.Mode, c.Total, c.Pending, c.Running, c.Ok, c.Failed, c.Skipped, c.Cancelled, c.TimedOut, c.Lost, c.Unknown)
	if p.Paused {
		s += " paused"
	}
	if a := p.Audit; a != nil {
		s += fmt.Sprintf(" duplicates=%d late=%d unexpected=%d stale=%d", a.Duplicates, a.Late, a.Unexpected, a.Stale)
	}
	for i, u := range p.Units {
		s += fmt.Sprintf(" %s/%s=%d/%d", u.Set.Stage, u.Set.Topic, r.units[i].GetCardinality(), u.Set.Partitions)
	}
	var parked []string
	for _, k := range p.Parked {
		parked = append(parked, k.Run)
	}
	sort.Strings(parked)
	if len(parked) > 0 {
		s += fmt.Sprintf(" parked=%v", parked)
	}
	return s
}
