package processors

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/quiesce/quiesce/codecs"
)

// survey looks at every row once: deadlines, deletes, and the status that followers get again.
func (p *part) survey(ctx context.Context) error {
	s := surveyor{part: p, status: p.repeater()}
	s.glancer, _ = p.machine.(Glancer)
	if err := p.st.Each(func(key, value []byte) error { return s.take(ctx, key, value) }); err != nil {
		return fmt.Errorf("survey: %w", err)
	}
	s.settle()
	return s.status.flush(ctx)
}

// surveyor goes through the store in key order: the parts of a row stand behind it.
type surveyor struct {
	*part
	glancer Glancer // nil = every row is decoded
	status  *repeater
	last    candidate // what the last header row allows to delete
	there   []string  // of its parts, those that exist
	settled string    // key of the last header row if it was not decoded
	value   []byte    // of it
}

func (s *surveyor) take(ctx context.Context, key, value []byte) error {
	if codecs.IsReserved(key) {
		return nil
	}
	env, row, err := ParseEnvelope(value)
	if err != nil {
		return fmt.Errorf("row %q: %w", key, err)
	}
	if env.Part {
		return s.takePart(string(key), value)
	}
	s.settle()
	if s.glancer != nil && len(env.Spans) == 0 && env.Epoch == s.done.epoch {
		if deadline, ok := s.glancer.Glance(row); ok {
			s.settled, s.value = string(key), append(s.value[:0], value...)
			if !s.timers.far.add(s.settled, deadline, s.now()) {
				s.timers.set(s.settled, deadline)
			}
			return nil
		}
	}
	e, err := s.look(string(key), value)
	if err != nil {
		return err
	}
	s.timers.set(e.key, s.machine.Deadline(e.row))
	s.last, _ = s.candidate(e)
	if o := s.statusOf(e); o != nil {
		return s.status.repeat(ctx, o)
	}
	return nil
}

func (s *surveyor) takePart(key string, value []byte) error {
	if strings.HasPrefix(key, s.settled+"\x00") { // left over: its row says so
		e, err := s.look(s.settled, s.value)
		if err != nil {
			return err
		}
		s.last, _ = s.candidate(e)
		s.settled = ""
	}
	for _, k := range s.last.parts {
		if k == key {
			s.there = append(s.there, k)
			return nil
		}
	}
	_, err := s.look(key, value)
	return err
}

// look decodes a row. One of a newer release is refused.
func (s *surveyor) look(key string, value []byte) (*entry, error) {
	e := &entry{key: key}
	err := s.decode(e, value)
	if errors.Is(err, codecs.ErrNewFormat) {
		err = fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return e, err
}

// settle keeps the candidate of the last header row if there is something left to delete: a marker names its parts for
// as long as it stands.
func (s *surveyor) settle() {
	if s.last.self || len(s.there) > 0 {
		s.last.parts = s.there
		s.collect = append(s.collect, s.last)
	}
	s.last, s.there, s.settled = candidate{}, nil, ""
}
