package queue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/queue"
	"github.com/quiesce/quiesce/topology"
)

// A member that joins and gets nothing takes nothing: a task that runs meanwhile, longer than a member waits for its tasks
// when partitions go, ends as if nobody had come.
func TestTaskOutlivesAnEmptyRebalance(t *testing.T) {
	k := setup(t, 1, 50*time.Millisecond)
	steady, err := queue.Open(t.Context(), k.config())
	require.NoError(t, err)
	defer func() { require.NoError(t, steady.Close()) }()
	require.NoError(t, k.producer().Enqueue(t.Context(), "q", 0, &codecs.Task{Kind: "sub-job", Batch: "b", Run: "r", Attempt: 1}))
	ds, err := steady.Receive(t.Context(), 1)
	require.NoError(t, err)
	require.Len(t, ds, 1)

	group := topology.WorkTopic(k.prefix, "q")
	members := func(n int) {
		require.Eventually(t, func() bool {
			g, err := k.admin.DescribeGroups(t.Context(), group)
			return err == nil && g[group].State == "Stable" && len(g[group].Members) == n
		}, patience, 10*time.Millisecond, "%d members", n)
	}
	members(1)
	visitor, err := queue.Open(t.Context(), k.config())
	require.NoError(t, err)
	members(2)
	require.NoError(t, visitor.Close())
	members(1)

	require.NoError(t, ds[0].Context().Err(), "its partition has not moved")
	ds[0].Done()
	require.Eventually(t, func() bool { return k.lag(t) == 0 }, patience, 10*time.Millisecond, "its end is committed")
}
