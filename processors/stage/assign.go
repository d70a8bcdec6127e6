package stage

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/markers"
	"github.com/quiesce/quiesce/topology"
)

// assigned makes the units of partitions that the group gave us, and says where their reading begins: at the position
// of their state, whatever the group's offset is.
func (s *session) assigned(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	restored, err := s.restore(ctx, offsets)
	if err != nil {
		return nil, fmt.Errorf("stage %s: restore units: %w", s.cfg.Stage, err)
	}
	for p, u := range restored {
		offsets[p.topic][p.id] = kgo.NewOffset().At(u.machine.Position())
		s.cfg.Log.Debug("unit taken", "stage", s.cfg.Stage, "topic", p.topic, "partition", p.id, "offset", u.machine.Position())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, u := range restored {
		if old := s.units[p]; old != nil {
			return nil, fmt.Errorf("stage %s: %s/%d was assigned twice", s.cfg.Stage, p.topic, p.id)
		}
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
	if err := s.commit(s.produceCtx, units); err != nil {
		s.cfg.Log.Warn("last commit of revoked partitions failed", "stage", s.cfg.Stage, "error", err)
	}
}

// lost ends the units that belong to another member already.
func (s *session) lost(gone map[string][]int32) {
	each(s.take(gone), func(u *unit) { u.kill(errLost) })
}

func (s *session) unitConfig(p partition) markers.Config {
	return markers.Config{
		Unit:       &codecs.Unit{Stage: s.cfg.Stage, Topic: p.topic, Partition: uint32(p.id)},
		Topologies: append([]*topology.Topology{s.cfg.Topology}, s.cfg.Older...),
		Counts:     s.facts.counts,
	}
}
