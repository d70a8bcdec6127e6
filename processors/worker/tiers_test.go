package worker_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/worker"
	"github.com/quiesce/quiesce/topology"
)

// Attempts that fail and attempts that time out wait in the tier of their delay, one topic a delay: no attempt is early,
// each tier has each task once, and the last attempt is the outcome and a dead letter.
func TestTiersOverTheBroker(t *testing.T) {
	const n, first, second = 20, 50 * time.Millisecond, 200 * time.Millisecond
	k := setup(t, 2, first, second)
	var mu sync.Mutex
	starts, ends := map[uint32][]time.Time{}, map[uint32][]time.Time{}
	note := func(at map[uint32][]time.Time, task *worker.Task) {
		mu.Lock()
		defer mu.Unlock()
		at[task.Index] = append(at[task.Index], time.Now())
	}
	cfg := k.config()
	cfg.Handler = func(ctx context.Context, task *worker.Task) (worker.Result, error) {
		note(starts, task)
		defer note(ends, task)
		if task.Index%2 == 0 {
			return hang(ctx, task)
		}
		return worker.Result{}, errors.New("not yet")
	}
	tasks := subjobs(n, &codecs.Retry{Attempts: 3, First: first.Milliseconds(), Factor: 4})
	for _, task := range tasks {
		if task.Index%2 == 0 {
			task.AttemptTimeout = 20
		}
	}
	k.enqueue(tasks...)
	control, dead := k.follow(codecs.TopicControl), k.follow(codecs.TopicDeadLetter)
	k.run(cfg)
	for i, it := range outcomes(t, control, n) {
		if i%2 == 0 {
			require.Equal(t, codecs.TimedOut, it.Outcome, "task %d: %s", i, it.Reason)
			require.Equal(t, "timed out after 20ms", it.Reason)
		} else {
			require.Equal(t, codecs.Failed, it.Outcome, "task %d: %s", i, it.Reason)
			require.Equal(t, "not yet", it.Reason)
		}
		require.Equal(t, uint32(3), it.Attempt)
	}
	for range n {
		require.Equal(t, uint32(3), receive(t, dead).Data.(*codecs.Task).Attempt)
	}
	mu.Lock()
	defer mu.Unlock()
	const tick = 2 * time.Millisecond // append times are whole milliseconds
	for i := range uint32(n) {
		require.Len(t, starts[i], 3)
		require.GreaterOrEqual(t, starts[i][1].Sub(ends[i][0])+tick, first, "task %d", i)
		require.GreaterOrEqual(t, starts[i][2].Sub(ends[i][1])+tick, second, "task %d", i)
	}
	for _, delay := range []time.Duration{first, second} {
		var records int64
		offsets, err := kadm.NewClient(k.client).ListEndOffsets(t.Context(), topology.RetryTopic(k.prefix, "q", delay))
		require.NoError(t, err)
		offsets.Each(func(o kadm.ListedOffset) { records += o.Offset })
		require.Equal(t, int64(n), records, "in the tier of %v", delay)
	}
}
