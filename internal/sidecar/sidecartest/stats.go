package sidecartest

import (
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/processors/stats"
)

// Stats is the machine of statistics over events that a test gives it.
type Stats struct {
	Ready sidecar.Readiness
	rows  map[stats.Key]*stats.Row
}

var _ sidecar.Stats = (*Stats)(nil)

// NewStats makes statistics of nothing.
func NewStats() *Stats {
	return &Stats{Ready: sidecar.Readiness{Percent: 100, OK: true}, rows: map[stats.Key]*stats.Row{}}
}

// Count takes an event that stands in a partition of the events and was appended at a time, in ms.
func (s *Stats) Count(partition int32, at int64, name string, data proto.Message) {
	m := stats.New()
	rec, err := codecs.Encode("events", "k", "/test", &codecs.Event{Type: name, ID: "id", Data: data})
	if err != nil {
		panic(err)
	}
	rec.Partition, rec.Time = partition, at
	var ev codecs.Event
	if err := m.Decode(&rec, &ev); err != nil {
		panic(err)
	}
	k, err := stats.ParseKey(ev.Key)
	if err != nil {
		panic(err)
	}
	if s.rows[k] == nil {
		s.rows[k] = m.NewRow(ev.Key).(*stats.Row)
	}
	m.Step(s.rows[k], nil, 0, &ev, nil)
}

// Readiness is the field.
func (s *Stats) Readiness() sidecar.Readiness { return s.Ready }

// Rows returns what is wanted.
func (s *Stats) Rows(wanted func(stats.Key) bool) (rows []*stats.Row, err error) {
	if !s.Ready.OK {
		return nil, sidecar.ErrNotReady
	}
	for k, r := range s.rows {
		if wanted(k) {
			rows = append(rows, r)
		}
	}
	return rows, nil
}
