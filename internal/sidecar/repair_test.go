package sidecar_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/sidecartest"
)

// parked is a log whose dead letter holds n records of every row.
type parked struct {
	*sidecartest.Deployment
	n    int
	err  error
	upto []int64
}

func (p *parked) Waiting(context.Context, string) (int, error) { return p.n, p.err }

func (p *parked) Repair(_ context.Context, _ string, upto int64) (*api.Repaired, error) {
	p.upto = append(p.upto, upto)
	r := &api.Repaired{Sent: p.n, Refused: 1, Why: []api.Refusal{{Offset: 7, Reason: "too large"}}}
	p.n = 0
	return r, p.err
}

// A repair sends back what waits below it, also when the quarantine was lifted before; then there is nothing to repair.
func TestRepairSendsBackWhatWaits(t *testing.T) {
	p := &parked{n: 3}
	b := setup(t, func(c *sidecar.Config) {
		p.Deployment = c.Log.(*sidecartest.Deployment)
		c.Log, c.AtLeastTimeout = p, 300*time.Millisecond
	})
	b.start("b-1", "")
	var got api.Accepted
	b.post("/v1/batches/b-1:repair", "").ok(202, &got)
	require.Equal(t, &api.Repaired{Sent: 3, Refused: 1, Why: []api.Refusal{{Offset: 7, Reason: "too large"}}}, got.Repaired)
	require.Equal(t, []int64{got.Position.Offset}, p.upto)
	b.post("/v1/batches/b-1:repair", "").problem(409, api.ProblemWrongState)
	p.n = 1
	b.post("/v1/batches/b-1:redrive", "").problem(409, api.ProblemWrongState)
	b.post("/v1/batches/b-1:pause", "").ok(202, &got)
	require.Len(t, p.upto, 1, "only a repair does that")

	p.err = errors.New("gone")
	b.post("/v1/batches/b-1:repair", "").problem(502, api.ProblemBroker)
	p.err = nil
	b.d.Hold()
	problem := b.post("/v1/batches/b-1:repair", "", "Idempotency-Key", "k").problem(504, api.ProblemNotYet)
	require.Contains(t, problem.Detail, "Idempotency-Key")
	b.d.Release()
	b.post("/v1/batches/b-1:repair", "", "Idempotency-Key", "k").ok(202, &got)
	require.Equal(t, 1, got.Repaired.Sent)
}
