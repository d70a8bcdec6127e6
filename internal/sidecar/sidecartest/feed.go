package sidecartest

import (
	"context"
	"maps"

	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// Open reads the events in memory.
func (d *Deployment) Open(_ context.Context, from sidecar.Cursor, fromStart bool) (sidecar.Stream, error) {
	s := &stream{d: d, at: sidecar.Cursor{}}
	d.locked(func() {
		for p := range int32(Partitions) {
			s.at[p] = int64(len(d.events[p]))
			if fromStart {
				s.at[p] = 0
			}
			if o, ok := from[p]; ok {
				s.at[p] = o
			}
		}
	})
	return s, nil
}

type stream struct {
	d  *Deployment
	at sidecar.Cursor
}

func (s *stream) Close() {}

func (s *stream) Cursor() sidecar.Cursor { return maps.Clone(s.at) }

func (s *stream) Next(ctx context.Context) ([]api.Event, error) {
	for {
		var got []api.Event
		var more chan struct{}
		s.d.locked(func() {
			more = s.d.appended
			for p := range int32(Partitions) {
				got = append(got, s.d.events[p][s.at[p]:]...)
				s.at[p] = int64(len(s.d.events[p]))
			}
		})
		if len(got) > 0 {
			return got, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
