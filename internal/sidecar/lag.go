package sidecar

import (
	"context"
	"sync"
	"time"

	"github.com/quiesce/quiesce/topology"
)

// lagTracker remembers when each committed offset was last seen to move: "no progress for 12 s" cannot be read from
// Kafka. It looks once a second at the groups of all declared topologies, and at every explain.
type lagTracker struct {
	groups Groups
	now    func() time.Time

	mu   sync.Mutex
	seen map[unitKey]sighting
}

type unitKey struct {
	group, topic string
	partition    int32
}

// sighting is what was last seen of a unit.
type sighting struct {
	committed int64
	lag       int64
	since     time.Time // when it last moved, or began to have something to read
}

const lagInterval = time.Second

func newLagTracker(groups Groups, now func() time.Time) *lagTracker {
	return &lagTracker{groups: groups, now: now, seen: map[unitKey]sighting{}}
}

// run looks until ctx ends.
func (l *lagTracker) run(ctx context.Context, watched func() []*topology.Topology) {
	if l.groups == nil || len(watched()) == 0 {
		return
	}
	tick := time.NewTicker(lagInterval)
	defer tick.Stop()
	for {
		for _, t := range watched() {
			for _, st := range t.Stages {
				limit, cancel := context.WithTimeout(ctx, 5*lagInterval)
				_, _ = l.look(limit, st.Group, st.In) // explain reports what cannot be asked
				cancel()
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// look asks for a group and notes what moved.
func (l *lagTracker) look(ctx context.Context, group string, topics []string) (*Group, error) {
	g, err := l.groups.Group(ctx, group, topics)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range g.Inputs {
		k := unitKey{group, u.Topic, u.Partition}
		before, known := l.seen[k]
		s := sighting{committed: u.Committed, lag: u.Lag(), since: before.since}
		if !known || u.Committed != before.committed || before.lag == 0 {
			s.since = l.now()
		}
		l.seen[k] = s
	}
	return g, nil
}

// idle returns how long a unit has had something to read without committing; 0 when it has nothing to read.
func (l *lagTracker) idle(group, topic string, partition int32) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.seen[unitKey{group, topic, partition}]
	if !ok || s.lag == 0 {
		return 0
	}
	return l.now().Sub(s.since)
}

// watched are the topologies whose groups are looked at.
func (s *Server) watched() []*topology.Topology { return s.cfg.Topologies }
