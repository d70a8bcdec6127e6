package bench

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors"
)

// floor is a bare consumer that does the controller's Step on rows in memory and keeps nothing: what the runtime could
// cost at least.
func floor(ctx context.Context, f *field, m processors.Machine) (measure, error) {
	var watch stopwatch
	s := newStepper(m)
	left := f.cfg.Batches
	err := f.consume(ctx, func(k *kgo.Record) (bool, error) {
		watch.first()
		ended, err := s.step(k)
		left -= ended
		return left == 0, err
	})
	if err != nil {
		return measure{}, fmt.Errorf("floor: %w", err)
	}
	return watch.stop(), nil
}

// stepper runs a machine over rows in memory.
type stepper struct {
	m     processors.Machine
	rows  map[string]processors.Row
	parts map[string]processors.Row
	rec   codecs.Record
	ev    codecs.Event
	out   []codecs.Message
	use   []processors.Row
}

func newStepper(m processors.Machine) *stepper {
	return &stepper{m: m, rows: map[string]processors.Row{}, parts: map[string]processors.Row{}}
}

// step applies one record and returns how many batches ended by it.
func (s *stepper) step(k *kgo.Record) (ended int, err error) {
	ours(k, &s.rec)
	if err := s.m.Decode(&s.rec, &s.ev); err != nil {
		return 0, err
	}
	row, ok := s.rows[s.ev.Key]
	if !ok {
		row = s.m.NewRow(s.ev.Key)
		s.rows[s.ev.Key] = row
	}
	s.use = s.use[:0]
	for _, key := range s.m.Parts(row, k.Offset, &s.ev) {
		part, ok := s.parts[key]
		if !ok {
			part = s.m.NewPart(key)
			s.parts[key] = part
		}
		s.m.StepPart(part, k.Offset, &s.ev)
		s.use = append(s.use, part)
	}
	s.out = s.m.Step(row, s.use, k.Offset, &s.ev, s.out[:0])
	for i := range s.out {
		if terminal(s.out[i].ID) {
			ended++
		}
	}
	return ended, nil
}
