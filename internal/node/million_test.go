package node_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/node"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/client"
	"github.com/quiesce/quiesce/processors/worker"
	"github.com/quiesce/quiesce/topology"
)

const hugeFile = `job: huge
version: 1
steps:
  each: {fan_out: {split: split, queue: work, window: 10000}}
`

// A step of 1,000,000 sub-jobs (50,000 in the short form) with every role and the workers in one process, the broker in
// another: accepted, run, read in pages; the process holds no more memory at the end than when half of it was done. A
// second one is cancelled while its first window is held: at once, and its pages say so.
func TestStepOfAMillion(t *testing.T) {
	total := 50_000
	if os.Getenv("QUIESCE_TEST_LONG") == "1" {
		total = 1_000_000
	}
	var held atomic.Bool
	_, c := start(t, node.Config{
		Bootstrap: []string{otherProcess(t)},
		Jobs:      node.Jobs{Types: []*topology.JobType{loadJob(t, hugeFile)}, Queues: small("split", "work")},
		Workers: []worker.Config{
			{Queue: "split", Splitter: func(_ context.Context, _ *worker.Task, emit func(*codecs.ManifestTask) error) error {
				for i := range total {
					if err := emit(&codecs.ManifestTask{Id: fmt.Sprintf("customer-%d", i)}); err != nil {
						return err
					}
				}
				return nil
			}},
			{Queue: "work", Concurrency: 1000, Handler: func(ctx context.Context, _ *worker.Task) (worker.Result, error) {
				if held.Load() {
					<-ctx.Done()
					return worker.Result{}, ctx.Err()
				}
				return worker.Result{}, nil
			}, DrainTimeout: 10 * time.Millisecond},
		},
	})
	ctx := t.Context()
	all := client.JobID{Job: "all"}
	requested(t, c, all)
	half := memoryAt(t, c, "all.each", uint32(total/2))
	j, err := c.WaitJob(ctx, all, nil)
	require.NoError(t, err)
	end := memory()
	require.Equal(t, "completed", j.State, j.Reason)
	require.Equal(t, &api.Counts{Total: uint32(total), OK: uint32(total)}, j.Steps[0].Counts)
	t.Logf("%d sub-jobs: %.1f MB live when half was done, %.1f MB at the end", total, half, end)
	require.Less(t, end, half+16, "MB")

	next := uint32(0)
	for task, err := range c.JobTasks(ctx, all, "each", "ok") {
		require.NoError(t, err)
		require.Equal(t, next, task.Index)
		next++
	}
	require.Equal(t, uint32(total), next, "every task is on one page")

	held.Store(true)
	gone := client.JobID{Job: "gone"}
	requested(t, c, gone)
	memoryAt(t, c, "gone.each", 0)
	_, err = c.JobCommand(ctx, gone, "cancel", nil, client.WriteOptions{IdempotencyKey: "c1"})
	require.NoError(t, err)
	j, err = c.WaitJob(ctx, gone, nil)
	require.NoError(t, err)
	require.Equal(t, "cancelled", j.State)
	b, err := c.Wait(ctx, "gone.each", nil)
	require.NoError(t, err)
	require.Equal(t, api.Counts{Total: uint32(total), Cancelled: uint32(total)}, b.Counts)
	next = 0
	for task, err := range c.JobTasks(ctx, gone, "each", "cancelled") {
		require.NoError(t, err)
		require.Equal(t, next, task.Index)
		if next++; next == 5000 {
			break
		}
	}
	require.Equal(t, uint32(5000), next)
}

func requested(t *testing.T, c *client.Client, id client.JobID) {
	t.Helper()
	_, err := c.RequestJob(t.Context(), id, &codecs.JobRequested{Type: "huge"}, client.WriteOptions{})
	require.NoError(t, err)
}

// memoryAt waits until a batch is sealed and has so many outcomes, and returns the live memory in MB.
func memoryAt(t *testing.T, c *client.Client, batch string, done uint32) float64 {
	t.Helper()
	require.Eventually(t, func() bool {
		b, err := c.Get(t.Context(), batch)
		return err == nil && b.SealedAt > 0 && b.Counts.OK >= done
	}, 5*time.Minute, 10*time.Millisecond)
	return memory()
}

// memory is what is live on the heap, in MB.
func memory() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}
