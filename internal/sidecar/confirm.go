package sidecar

import (
	"context"
	"errors"
	"fmt"

	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// judge runs a check of the batch as the view has it. A refusal is given only when the view has reached the end that the
// log has now: an earlier write may still be on its way into the table.
func (s *Server) judge(ctx context.Context, id string, check func(b *api.Batch) error) error {
	look := func() error {
		b, err := s.cfg.Batches.Get(id)
		if err != nil {
			return err
		}
		return check(b)
	}
	err := look()
	if err == nil || errors.Is(err, ErrNotReady) {
		return err
	}
	last, lerr := s.cfg.Log.Last(ctx, id)
	if lerr != nil {
		return brokerFault("end of the control topic", lerr)
	}
	if last.Offset >= 0 {
		if err := s.await(ctx, id, last, s.cfg.AtLeastTimeout); err != nil {
			return err
		}
	}
	return look()
}

func brokerFault(what string, err error) error {
	return &api.Problem{Type: api.ProblemBroker, Title: "Kafka did not answer", Status: 502, Detail: fmt.Sprintf("%s: %v", what, err)}
}
