package sidecar

import (
	"context"

	"github.com/quiesce/quiesce/internal/repair"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

var _ Repairs = (*TopicLog)(nil)

const maxWhy = 10

// Waiting looks into the dead letter.
func (l *TopicLog) Waiting(ctx context.Context, key string) (int, error) {
	r, err := repair.Look(ctx, l.repair, repair.Row{Topic: l.logical, Key: key})
	return r.Sent, err
}

// Repair copies from the dead letter into the log.
func (l *TopicLog) Repair(ctx context.Context, key string, upto int64) (*api.Repaired, error) {
	r, err := repair.Run(ctx, l.repair, repair.Row{Topic: l.logical, Key: key, Upto: upto})
	if err != nil {
		return nil, err
	}
	done := &api.Repaired{Sent: r.Sent, Before: r.Before, Refused: len(r.Refused)}
	for _, f := range r.Refused[:min(len(r.Refused), maxWhy)] {
		done.Why = append(done.Why, api.Refusal{Offset: api.Int64(f.Offset), Reason: f.Reason})
	}
	return done, nil
}
