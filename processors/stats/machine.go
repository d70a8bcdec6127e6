package stats

import (
	"github.com/quiesce/quiesce/codecs"
)

// maxRowBytes bounds a row: three sketches of at most 1,024 bins, and some counters.
const maxRowBytes = 64 << 10

// Machine implements the runtime's contract for the stats group.
type Machine struct{}

// New returns the machine.
func New() *Machine { return &Machine{} }

// Role is stats.
func (*Machine) Role() string { return codecs.GroupStats }

// Input is the events topic.
func (*Machine) Input() string { return codecs.TopicEvents }

// Local says that rows belong to the partition that an event was read from.
func (*Machine) Local() bool { return true }

// MaxRowBytes bounds a row.
func (*Machine) MaxRowBytes() int { return maxRowBytes }

// Decode reads an event and finds its row.
func (*Machine) Decode(rec *codecs.Record, ev *codecs.Event) error {
	if err := codecs.Decode(rec, ev); err != nil {
		return err
	}
	ev.Key = keyOf(ev).String()
	return nil
}

// Step counts one event. It emits nothing.
func (*Machine) Step(row codecs.Row, _ []codecs.Row, _ int64, ev *codecs.Event, out []codecs.Message) []codecs.Message {
	row.(*Row).count(ev)
	return out
}

// Parts names no rows: there are no parts.
func (*Machine) Parts(codecs.Row, int64, *codecs.Event) []string { return nil }

// NewPart is never called: there are no parts.
func (m *Machine) NewPart(key string) codecs.Row { return m.NewRow(key) }

// LoadPart is never called: there are no parts.
func (m *Machine) LoadPart(key string, b []byte) (codecs.Row, error) { return m.LoadRow(key, b) }

// StepPart is never called: there are no parts.
func (*Machine) StepPart(codecs.Row, int64, *codecs.Event) {}

// Deadline is none.
func (*Machine) Deadline(codecs.Row) int64 { return 0 }

// Nudge is never asked for: there are no deadlines.
func (*Machine) Nudge(string) codecs.Message { return codecs.Message{} }

// Status is none.
func (*Machine) Status(codecs.Row, bool) (codecs.Message, bool) { return codecs.Message{}, false }

// Collect deletes nothing: rows stay.
func (*Machine) Collect(codecs.Row) ([]string, bool) { return nil, false }

// Repairs says that every event lifts a quarantine: one that cannot be counted spoils no other.
func (*Machine) Repairs(*codecs.Event) bool { return true }
