package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/queue"
)

// Tasks 1, 2, 3, 5, 6 and 7 are done, 4 is open, and the partition goes to another member: it gets 4 alone, whether its
// last owner left, died, or had the partition taken away. A death counts as a delivery of 4.
func doneAboveAnOpenOne(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(q *queue.Kafka)
		count int
	}{
		"the owner leaves": {func(q *queue.Kafka) { require.NoError(t, q.Close()) }, 1},
		"the owner dies":   {queue.Crash, 2},
	} {
		t.Run(name, func(t *testing.T) {
			k := setup(t, 1)
			var tasks []*codecs.Task
			for i := range uint32(8) {
				tasks = append(tasks, &codecs.Task{Kind: "sub-job", Batch: "b", Index: i})
			}
			require.NoError(t, k.producer().Enqueue(t.Context(), "q", 0, tasks...))
			q := k.open(t)
			ended := map[uint32]int{}
			for range tasks {
				if d := receiveOne(t, q); d.Task.Index != 4 {
					ended[d.Task.Index]++
					d.Done()
				}
			}
			require.NoError(t, queue.Commit(t.Context(), q))
			c.leave(q)

			next := k.open(t)
			d := receiveOne(t, next)
			require.Equal(t, uint32(4), d.Task.Index, "what is done above it does not come again")
			require.Equal(t, c.count, d.Count)
			ended[4]++
			d.Done()
			require.Eventually(t, func() bool { return k.lag(t) == 0 }, patience, 10*time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			more, err := next.Receive(ctx, 8)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Empty(t, more)
			for i := range uint32(8) {
				require.Equal(t, 1, ended[i], "task %d", i)
			}
		})
	}
}
