package dispatcher_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/processors/dispatcher"
	"github.com/quiesce/quiesce/processors/worker"
)

// tasks reads n tasks of the queue, by index.
func tasks(t *testing.T, ch <-chan *codecs.Event, n int) map[uint32]*codecs.Task {
	t.Helper()
	got := map[uint32]*codecs.Task{}
	for len(got) < n {
		task := receive(t, ch).Data.(*codecs.Task)
		require.Nil(t, got[task.Index], "task %d came twice", task.Index)
		got[task.Index] = task
	}
	return got
}

// An order releases exactly its range, with what the tasks have in common.
func TestReleasesTheRange(t *testing.T) {
	k := setup(t, 4)
	at := k.manifest("b", 5000, 300)
	k.manifest("other", 10, 10)
	more := k.manifest("b", 7, 7) // added by a task: it does not know its index
	more[0].First = 5000
	counters := &dispatcher.Counters{}
	k.run(func(c *dispatcher.Config) { c.Counters = counters; c.CacheBytes = 120_000 })
	work := k.follow("work.q")
	template := &codecs.TaskTemplate{Job: "j", Step: "s", JobKey: "j", JobType: "jt", Customer: "c", Priority: 3,
		Retry: &codecs.Retry{Attempts: 4}, AttemptTimeout: 900}
	k.order("b", &codecs.Dispatch{Run: "r", Round: 1, Queue: "q", Lo: 0, Hi: 450, Chunks: at[0:2], Task: template})
	got := tasks(t, work, 450)
	for i, task := range got {
		require.Less(t, i, uint32(450))
		require.Equal(t, fmt.Sprint("t", i), task.Id)
		require.Equal(t, fmt.Sprint(i), string(task.Payload.Data))
	}
	one := got[17]
	require.InDelta(t, time.Now().UnixMilli(), one.EnqueuedAt, 60_000)
	one.EnqueuedAt = 0
	want := &codecs.Task{Kind: "sub-job", Batch: "b", Run: "r", Round: 1, Index: 17, Id: "t17", Payload: &codecs.Payload{Data: []byte("17")},
		Job: "j", Step: "s", JobKey: "j", JobType: "jt", Customer: "c", Priority: 3, Attempt: 1, Retry: &codecs.Retry{Attempts: 4},
		AttemptTimeout: 900}
	require.True(t, proto.Equal(want, one), "%v", one)

	k.order("b", &codecs.Dispatch{Run: "r", Round: 1, Queue: "q", Lo: 450, Hi: 5003, Chunks: append(at[1:], more...), Task: template})
	got = tasks(t, work, 5003-450)
	require.NotNil(t, got[450])
	require.Equal(t, "t2", got[5002].Id)

	only := roaring.BitmapOf(3, 4, 4999)
	b, err := only.ToBytes()
	require.NoError(t, err)
	k.order("b", &codecs.Dispatch{Run: "r", Round: 2, Queue: "q", Lo: 3, Hi: 5000, Chunks: at, Only: b, Task: template})
	got = tasks(t, work, 3)
	require.Equal(t, uint32(2), got[4999].Round)
	require.Eventually(t, func() bool { return counters.Tasks.Load() == 5003+3 }, time.Minute, time.Millisecond, "counted when they are acknowledged")
	require.Zero(t, counters.ChunksGone.Load())
}

// Chunks that were removed are left out and counted; what is no order, or for no queue, is put away. Others go on.
func TestWhatCannotBeReleased(t *testing.T) {
	k := setup(t, 1)
	at := k.manifest("b", 30, 10)
	_, err := k.reporter.Chunk(context.Background(), codecs.ChunkKey("b", "p1", 3), nil) // a null record: no chunk
	require.NoError(t, err)
	gone := &codecs.ChunkPosition{First: 10, Partition: at[2].Partition, Offset: at[2].Offset + 1}
	never := &codecs.ChunkPosition{First: 20, Partition: at[2].Partition, Offset: 1_000_000}
	counters := &dispatcher.Counters{}
	k.run(func(c *dispatcher.Config) { c.Counters = counters; c.QueueWait = 50 * time.Millisecond })
	k.order("b", &codecs.Dispatch{Run: "r", Queue: "q", Lo: 0, Hi: 30, Chunks: []*codecs.ChunkPosition{at[0], gone, never}})
	k.order("b", &codecs.Dispatch{Run: "r", Queue: "nobody-made-it", Lo: 0, Hi: 30, Chunks: at})
	k.order("b", &codecs.Dispatch{Run: "r", Queue: "q", Lo: 0, Hi: 30, Chunks: at, Only: []byte("no bitmap")})
	k.order("b", &codecs.Dispatch{Run: "r", Round: 2, Queue: "q", Lo: 20, Hi: 30, Chunks: at[2:]})
	work, dead := k.follow("work.q"), k.follow(codecs.TopicDeadLetter)
	got := tasks(t, work, 20)
	for i := range uint32(30) {
		require.Equal(t, i < 10 || i >= 20, got[i] != nil, "task %d", i)
	}
	for range 2 {
		require.Equal(t, codecs.TypeDispatch, receive(t, dead).Type)
	}
	require.Equal(t, uint64(2), counters.ChunksGone.Load())
}

// Chunks that a batch orders away are removed from where they are; those of others stay, and so do the rest.
func TestCollects(t *testing.T) {
	k := setup(t, 1)
	own, other := k.manifest("b", 30, 10), k.manifest("other", 10, 10)
	k.run()
	never := &codecs.ChunkPosition{Partition: own[0].Partition, Offset: 1_000_000}
	k.order("b", &codecs.Dispatch{Run: "r", Queue: "q", Collect: true, Chunks: []*codecs.ChunkPosition{own[2], other[0], never, own[1]}})
	k.order("b", &codecs.Dispatch{Run: "r", Queue: "q", Lo: 0, Hi: 10, Chunks: own[:1]})
	tasks(t, k.follow("work.q"), 10) // the orders of a batch are carried out in turn
	there := map[string]bool{}
	manifest := brokertest.Client(t, k.bootstrap, kgo.ConsumeTopics(codecs.Topic(k.prefix, codecs.TopicManifest)), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for records := 0; records < 4+2; {
		manifest.PollFetches(t.Context()).EachRecord(func(r *kgo.Record) {
			there[string(r.Key)] = r.Value != nil
			records++
		})
	}
	require.Equal(t, map[string]bool{codecs.ChunkKey("b", "p1", 0): true, codecs.ChunkKey("b", "p1", 1): false, codecs.ChunkKey("b", "p1", 2): false,
		codecs.ChunkKey("other", "p2", 0): true}, there)
}

// An instance that ends before it has committed leaves its orders to the next one: nothing is missing.
func TestRestartLosesNothing(t *testing.T) {
	k := setup(t, 2)
	const n = 4000
	at := k.manifest("b", n, 100)
	for lo := 0; lo < n; lo += 100 {
		k.order("b", &codecs.Dispatch{Run: "r", Queue: "q", Lo: uint32(lo), Hi: uint32(lo + 100), Chunks: at[lo/100 : lo/100+1]})
	}
	work := k.follow("work.q")
	seen := map[uint32]bool{}
	stop := k.run()
	for len(seen) < n {
		index := receive(t, work).Data.(*codecs.Task).Index
		repeated := seen[index]
		seen[index] = true
		if len(seen)%500 == 0 && !repeated {
			stop()
			stop = k.run()
		}
	}
}

// Orders to outcomes: every released task is reported once; the tasks of a batch are spread over the queue.
func TestFanOut(t *testing.T) {
	k := setup(t, 4)
	const n, window = 10_000, 1000
	at := k.manifest("b", n, 1000)
	k.run()
	k.work(func(context.Context, *worker.Task) (worker.Result, error) { return worker.Result{}, nil }, 64)
	control := k.follow(codecs.TopicControl)
	done, released := roaring.New(), uint32(0)
	release := func() { // as the controller does
		for released < n && uint64(released)-done.GetCardinality() <= window*3/4 {
			hi := min(released+window/4, n)
			k.order("b", &codecs.Dispatch{Run: "r", Queue: "q", Lo: released, Hi: hi, Chunks: at[released/1000 : (hi-1)/1000+1]})
			released = hi
		}
	}
	for release(); done.GetCardinality() < n; release() {
		for _, it := range receive(t, control).Data.(*codecs.BatchReport).Items {
			require.Equal(t, codecs.OK, it.Outcome, it.Reason)
			require.NoError(t, codecs.ForEachRange(it, func(first, last uint32) {
				require.Less(t, last, released, "released by nobody")
				for i := first; i <= last; i++ {
					require.True(t, done.CheckedAdd(i), "task %d is reported twice", i)
				}
			}))
		}
	}
}
