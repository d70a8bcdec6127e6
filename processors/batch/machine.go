package batch

import (
	"github.com/quiesce/quiesce/codecs"
)

// Machine implements the runtime's contract for the controller group. It has no state of its own.
type Machine struct{}

// New returns the machine.
func New() *Machine { return &Machine{} }

// maxRow bounds the row: the sets of ten million tasks in random order, several outcomes.
const maxRow = 4 << 20

// Role is the controller's.
func (*Machine) Role() string { return codecs.GroupController }

// Input is the control topic.
func (*Machine) Input() string { return codecs.TopicControl }

// Decode reads a control record.
func (*Machine) Decode(rec *codecs.Record, ev *codecs.Event) error { return codecs.Decode(rec, ev) }

// NewRow is a batch that nothing is known of.
func (*Machine) NewRow(string) codecs.Row { return newRow() }

// LoadRow reads what AppendBinary wrote.
func (*Machine) LoadRow(_ string, b []byte) (codecs.Row, error) { return load(b) }

// NewPart is not called: the machine has no parts.
func (*Machine) NewPart(string) codecs.Row { return newRow() }

// LoadPart is not called: the machine has no parts.
func (*Machine) LoadPart(_ string, b []byte) (codecs.Row, error) { return load(b) }

// Parts names none: the row holds everything.
func (*Machine) Parts(codecs.Row, int64, *codecs.Event) []string { return nil }

// StepPart is not called: the machine has no parts.
func (*Machine) StepPart(codecs.Row, int64, *codecs.Event) {}

// Step applies one event.
func (*Machine) Step(row codecs.Row, _ []codecs.Row, offset int64, ev *codecs.Event, out []codecs.Message) []codecs.Message {
	s := step{Row: row.(*Row), ev: ev, offset: offset, out: out}
	s.p.Now = max(s.p.Now, ev.Time)
	before := s.look()
	switch data := ev.Data.(type) {
	case *codecs.BatchStart:
		s.start(data)
	case *codecs.BatchSeal:
		s.seal(data)
	case *codecs.BatchReport:
		s.report(data)
	case *codecs.BatchEnd:
		s.unitEnd(data)
	case *codecs.BatchCommand:
		s.command(data)
	case *codecs.BatchNudge:
		if at := s.deadline(); !s.active() && at > 0 && s.p.Now >= at {
			s.collect()
		}
	}
	if s.active() {
		s.checkDeadlines()
	}
	if s.active() {
		s.judge()
	}
	if s.active() {
		s.release()
		s.progress()
	}
	s.p.Version++
	s.tellStatus(before)
	return s.out
}

// step is one event at work on one row.
type step struct {
	*Row
	ev     *codecs.Event
	offset int64
	out    []codecs.Message
}

// look is what the status depends on. Policy and deadlines are replaced, never changed in place.
type look struct {
	run       string
	state     codecs.State_Code
	round     uint32
	paused    bool
	policy    *codecs.Policy
	deadlines *codecs.Deadlines
}

func (r *Row) look() look {
	return look{r.p.Run, r.p.State, r.p.Round, r.p.Paused, r.p.Policy, r.p.Deadlines}
}

// active says that the current run has started and not ended.
func (r *Row) active() bool { return r.p.Run != "" && !r.p.State.Terminal() }

// Deadline is when the next of its deadlines passes.
func (*Machine) Deadline(row codecs.Row) int64 { return row.(*Row).deadline() }

// Nudge makes the machine look at the row's deadlines.
func (*Machine) Nudge(key string) codecs.Message {
	return codecs.Message{Topic: codecs.TopicControl, Key: key, Type: codecs.TypeBatchNudge, Data: &codecs.BatchNudge{}}
}

// Status is what views and services follow; it is worth repeating while the batch is open.
func (*Machine) Status(row codecs.Row, quarantined bool) (codecs.Message, bool) {
	r := row.(*Row)
	st := r.status()
	st.Quarantined = quarantined
	return codecs.Message{Topic: codecs.TopicStatus, Type: codecs.TypeBatchStatus, Data: st}, r.active() || quarantined
}

// Collect says that the header of a collected batch may go.
func (*Machine) Collect(row codecs.Row) (parts []string, self bool) {
	return nil, row.(*Row).p.State == codecs.State_collected
}

// Repairs says that a repair command lifts the quarantine.
func (*Machine) Repairs(ev *codecs.Event) bool {
	c, ok := ev.Data.(*codecs.BatchCommand)
	return ok && c.Verb == verbRepair
}

// MaxRowBytes bounds the row.
func (*Machine) MaxRowBytes() int { return maxRow }
