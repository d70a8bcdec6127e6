package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/processors/queue"
	"github.com/quiesce/quiesce/topology"
)

// readTasks returns the records of a topic from its start, as they come, until the test ends.
func readTasks(t *testing.T, k *kit, topic string) <-chan *kgo.Record {
	t.Helper()
	cl := brokertest.Client(t, k.bootstrap[0], kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	out := make(chan *kgo.Record, 10000)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { out <- r })
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return out
}

// A mover dies with moves that it has not committed: the next one goes on from the last commit. Nothing is lost, nothing
// comes early, and what is new comes in order.
func TestRetryMoverKilledInTheMiddle(t *testing.T) {
	const n, delay = 300, 200 * time.Millisecond
	k := setup(t, 2, delay)
	p := k.producer()
	go func() {
		for i := range n {
			task := &codecs.Task{Kind: "sub-job", Batch: "b", Run: "r", Index: uint32(i), Attempt: 2}
			if p.Enqueue(t.Context(), "q", delay, task) != nil {
				return
			}
		}
	}()
	appended := map[string]*kgo.Record{} // to the tier, by key
	tier, work := readTasks(t, k, topology.RetryTopic(k.prefix, "q", delay)), readTasks(t, k, topology.WorkTopic(k.prefix, "q"))

	first, err := queue.OpenRetry(k.config())
	require.NoError(t, err)
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	done := make(chan error, 1)
	go func() { done <- first.Run(ctx) }()

	seen, last, copies := map[string]bool{}, map[[2]int32]int64{}, 0
	for len(seen) < n {
		select {
		case r := <-tier:
			appended[string(r.Key)] = r
			continue
		case r := <-work:
			key := string(r.Key)
			for appended[key] == nil { // the other topic's reader is behind
				in := <-tier
				appended[string(in.Key)] = in
			}
			require.GreaterOrEqual(t, r.Timestamp.Sub(appended[key].Timestamp), delay, "%s came early", key)
			if seen[key] {
				copies++
				continue
			}
			seen[key] = true
			way := [2]int32{appended[key].Partition, r.Partition}
			require.GreaterOrEqual(t, appended[key].Offset, last[way], "%s overtook another", key)
			last[way] = appended[key].Offset
		case <-time.After(patience):
			t.Fatalf("%d of %d came", len(seen), n)
		}
		switch len(seen) {
		case n / 4:
			queue.CrashRetry(first)
		case n / 2:
			if ctx.Err() == nil {
				kill()
				require.NoError(t, <-done)
				k.retry(t)
			}
		}
	}
	t.Logf("%d retries, %d moved twice", n, copies)
	require.Positive(t, copies, "the first mover had moved what it did not commit")
}
