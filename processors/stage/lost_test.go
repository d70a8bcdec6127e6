package stage_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/processors/stage"
)

// expel answers heartbeats as to a member that the group has forgotten, while there is a budget.
func expel(c *kfake.Cluster, budget *atomic.Int64) {
	c.ControlKey(int16(kmsg.Heartbeat), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if budget.Add(-1) < 0 {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.HeartbeatResponse)
		resp.ErrorCode = kerr.UnknownMemberID.Code
		return resp, nil, true
	})
}

// A member that the group has forgotten (it was suspended, or cut off) has lost its partitions: nothing more of it is
// committed, it joins again, and the counts stay those of a plain loop.
func TestAMemberThatWasForgottenCommitsNothingMore(t *testing.T) {
	b := brokertest.Embedded(t) // the broker is made to forget
	var budget atomic.Int64
	expel(b.Cluster(), &budget)
	k := setupOn(t, b.Bootstrap(), diamond)
	f := k.follow()
	s := &seen{}
	var handled atomic.Int64
	for name := range k.topo.Stages {
		h := s.wrap(name, k.forward(name))
		for range 2 {
			k.run(name, func(ctx context.Context, r *stage.Record) ([]stage.Output, error) {
				if handled.Add(1)%10 == 0 { // so that it lasts for some heartbeats
					timer := time.NewTimer(2 * time.Millisecond)
					defer timer.Stop()
					<-timer.C
				}
				return h(ctx, r)
			})
		}
	}
	const n = 2000
	fed := make(chan struct{})
	go func() { defer close(fed); k.feed("m", "markers", n); k.feed("l", "ledger", n) }()
	for _, x := range []int64{200, 1500, 4000} {
		require.Eventually(t, func() bool { return handled.Load() > x }, patience, time.Millisecond)
		budget.Store(4)
		require.Eventually(t, func() bool { return budget.Load() < 0 }, patience, time.Millisecond)
	}
	<-fed
	f.completed(k, "m")
	s.everything(k, "m", n)
	l := f.completed(k, "l")
	s.everything(k, "l", n)
	require.Equal(t, map[string]int{"ok": n}, l.counts())
}
