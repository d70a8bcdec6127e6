package sidecar

import (
	"context"
	"errors"
	"fmt"

	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// judge runs a check of the batch as the view has it.
func (s *Server) judge(ctx context.Context, t target, check func(b *api.Batch) error) error {
	return s.confirm(ctx, t, func() error {
		b, err := s.cfg.Batches.Get(t.key)
		if err != nil {
			return err
		}
		return check(b)
	})
}

// confirm looks at a row. A refusal is given only when the view has reached the end that the log has now: an earlier write
// may still be on its way into the table.
func (s *Server) confirm(ctx context.Context, t target, look func() error) error {
	err := look()
	if err == nil || errors.Is(err, ErrNotReady) {
		return err
	}
	last, lerr := t.log.Last(ctx, t.key)
	if lerr != nil {
		return brokerFault("end of the log", lerr)
	}
	if last.Offset >= 0 {
		if err := s.await(ctx, t, last, s.cfg.AtLeastTimeout); err != nil {
			return err
		}
	}
	return look()
}

func brokerFault(what string, err error) error {
	return &api.Problem{Type: api.ProblemBroker, Title: "Kafka did not answer", Status: 502, Detail: fmt.Sprintf("%s: %v", what, err)}
}
