package stage

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// assigned makes the units of partitions that the group gave us, and says where their reading begins: at the position
// of their state, whatever the group's offset is.
func (s *session) assigned(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	var want []partition
	for topic, ids := range offsets {
		for id := range ids {
			want = append(want, partition{topic, id})
		}
	}
	restored, err := s.restore(ctx, want)
	if err != nil {
		return nil, fmt.Errorf("stage %s: restore units: %w", s.cfg.Stage, err)
	}
	for p, book := range restored {
		offsets[p.topic][p.id] = kgo.NewOffset().At(book.Position())
		s.cfg.Log.Debug("unit taken", "stage", s.cfg.Stage, "topic", p.topic, "partition", p.id, "offset", book.Position())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, book := range restored {
		if old := s.units[p]; old != nil {
			return nil, fmt.Errorf("stage %s: %s/%d was assigned twice", s.cfg.Stage, p.topic, p.id)
		}
		u := newUnit(s, book)
		s.units[p] = u
		s.client.ResumeFetchPartitions(map[string][]int32{p.topic: {p.id}})
		u.start()
	}
	return offsets, nil
}

// take removes units from the session.
func (s *session) take(gone map[string][]int32) map[partition]*unit {
	s.mu.Lock()
	defer s.mu.Unlock()
	units := map[partition]*unit{}
	for topic, ids := range gone {
		for _, id := range ids {
			p := partition{topic, id}
			if u := s.units[p]; u != nil {
				units[p] = u
				delete(s.units, p)
			}
		}
	}
	return units
}

// revoked drains the units that go to another member and commits them.
func (s *session) revoked(gone map[string][]int32) {
	units := s.take(gone)
	if len(units) == 0 {
		return
	}
	if s.ctx.Err() != nil {
		each(units, func(u *unit) { u.kill(context.Cause(s.ctx)) })
		return
	}
	each(units, (*unit).drain)
	if err := s.cfg.Hook(PointRevoked); err != nil {
		s.fail(err)
		return
	}
	s.lastCommit(units)
}

// lost ends the units that belong to another member already.
func (s *session) lost(gone map[string][]int32) {
	each(s.take(gone), func(u *unit) { u.kill(errLost) })
}
