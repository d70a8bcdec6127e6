package notify

import (
	"fmt"
	"strconv"

	"github.com/quiesce/quiesce/codecs"
)

const maxRowBytes = 4 << 10

// Machine implements the runtime's contract for the notifier group.
type Machine struct{ cfg Config }

// New checks the configuration and returns the machine.
func New(cfg Config) (*Machine, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("notifier: %w", err)
	}
	return &Machine{cfg}, nil
}

// Role is notifier.
func (*Machine) Role() string { return codecs.GroupNotifier }

// Input is the events topic.
func (*Machine) Input() string { return codecs.TopicEvents }

// Local says that the row belongs to the partition that an event was read from.
func (*Machine) Local() bool { return true }

// MaxRowBytes bounds a row.
func (*Machine) MaxRowBytes() int { return maxRowBytes }

// Decode reads an event; its row is that of the partition.
func (*Machine) Decode(rec *codecs.Record, ev *codecs.Event) error {
	if err := codecs.Decode(rec, ev); err != nil {
		return err
	}
	ev.Key = strconv.Itoa(int(rec.Partition))
	return nil
}

// Step asks for a delivery to every destination that the event is for.
func (m *Machine) Step(row codecs.Row, _ []codecs.Row, offset int64, ev *codecs.Event, out []codecs.Message) []codecs.Message {
	r := row.(*Row)
	r.Events++
	to, refused := m.matching(ev)
	r.Refused += refused
	if len(to) == 0 {
		return out
	}
	d := Delivery{ID: ev.ID, Type: ev.Type, Subject: ev.Subject, Time: ev.Time, Data: dataOf(ev)}
	d.Cut = d.Data == nil
	if d.ID == "" {
		d.ID = fmt.Sprintf("%d/%d", ev.Partition, offset)
	}
	for _, s := range to {
		d.Subscription = s
		b := d.payload()
		r.Deliveries++
		if d.Cut {
			r.Cut++
		}
		id := taskID(d.ID, s.destination())
		out = append(out, codecs.Message{Topic: codecs.WorkTopic(m.cfg.Queue), Key: id, Type: codecs.TypeTask, ID: id, Trace: ev.Traceparent, Due: true,
			Data: &codecs.Task{Id: id, Kind: KindDelivery, Attempt: 1, Retry: m.cfg.Retry, AttemptTimeout: m.cfg.AttemptTimeout,
				EnqueuedAt: ev.Time, JobType: factsOf(ev).jobType, Payload: &codecs.Payload{Data: b, ContentType: codecs.ContentJSON}}})
	}
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

// Repairs says that every event lifts a quarantine: one that cannot be matched spoils no other.
func (*Machine) Repairs(*codecs.Event) bool { return true }
