package sidecar

import (
	"context"

	"github.com/quiesce/quiesce/internal/sidecar/api"
)

const verbRepair = "repair"

// Repairs is a Log that can send back what waits in the dead letter because a row was quarantined. Without it a repair
// only lifts the quarantine.
type Repairs interface {
	Log
	// Waiting returns how many records of the row a repair would send back.
	Waiting(ctx context.Context, key string) (int, error)
	// Repair sends them back, those that were parked below an offset of the key's partition, each once however often it is
	// called.
	Repair(ctx context.Context, key string, upto int64) (*api.Repaired, error)
}

// refusal is why a verb makes no sense in the state that a row is in; nil = it does. A repair makes sense as long as
// records of the row wait: one that ended too early left them.
func (s *Server) refusal(ctx context.Context, t target, verb, reason string) error {
	if log, ok := t.log.(Repairs); ok && verb == verbRepair {
		n, err := log.Waiting(ctx, t.key)
		if err != nil {
			return brokerFault("look into the dead letter", err)
		}
		if n > 0 {
			return nil
		}
	}
	return wrongState(verb + ": " + reason)
}

// sendBack repairs a row whose quarantine the record at pos lifts. The dead letter is complete when the partition as a
// whole has passed that record.
func (s *Server) sendBack(ctx context.Context, t target, pos api.Position) (*api.Repaired, error) {
	log, ok := t.log.(Repairs)
	if !ok {
		return nil, nil
	}
	again := "; repeat the repair with the same Idempotency-Key"
	passed, err := s.until(ctx, t, s.cfg.AtLeastTimeout, func() (bool, error) { return t.table.Reached("", pos) })
	if err != nil {
		return nil, err
	}
	if !passed {
		return nil, notYet("the repair at " + pos.String() + " was not made durable within " + s.cfg.AtLeastTimeout.String() + again)
	}
	done, err := log.Repair(ctx, t.key, pos.Offset)
	if err != nil {
		return nil, brokerFault("send back what waits in the dead letter"+again, err)
	}
	return done, nil
}
