package sim_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sim"
	"github.com/quiesce/quiesce/processors/worker"
)

const (
	million    = 1_000_000
	hugeWindow = 256
	hugePool   = 64              // workers
	hugeTask   = time.Second     // a sub-job
	hugeHops   = 2 * time.Second // between the parts: acknowledgements, splits, the task that a worker is at
	smallJobs  = 1000
	smallTasks = 3
)

// A step of 1,000,000 sub-jobs and 1,000 small jobs share a queue and its workers. What the small ones wait for is the big
// one's window and each other, not the million; those of a higher priority wait for each other alone. The big one goes on
// meanwhile, its row stays small, and its cancel is a handful of records.
func TestMillionBesideSmallJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fan := func(name string, window uint32) *codecs.JobType {
			return &codecs.JobType{Name: name, Version: 1, Steps: []*codecs.StepSpec{
				{Name: "s", FanOut: &codecs.FanOutSpec{Split: "split-" + name, Queue: "work", Window: window}}}}
		}
		d, err := sim.Start(t.Context(), sim.Config{Types: []*codecs.JobType{fan("huge", hugeWindow), fan("small", 0)}, Log: quiet})
		require.NoError(t, err)
		defer func() { require.NoError(t, d.Stop()) }()
		w := worldOf(t, d)
		d.Work(sim.Pool{Workers: 1, Config: worker.Config{Queue: "split-huge", Splitter: numbered(million)}})
		d.Work(sim.Pool{Workers: 1, Config: worker.Config{Queue: "split-small", Splitter: numbered(smallTasks)}})
		d.Work(sim.Pool{Workers: hugePool, Config: worker.Config{Queue: "work", Handler: w.subjob(&outline{lasts: hugeTask})}})
		w.follow()

		request := func(id, kind string, priority uint32) {
			require.NoError(t, d.Send(codecs.TopicJobs, id, &codecs.Event{Type: codecs.TypeJobRequested, ID: id,
				Data: &codecs.JobRequested{Type: kind, Priority: priority}}))
		}
		request("huge", "huge", 0)
		w.pass(time.Minute)
		s := w.batch("huge.s")
		require.Equal(t, uint32(million), s.Total, "accepted")
		require.LessOrEqual(t, s.Released-s.Counts.Ok, uint32(hugeWindow))
		before := s.Counts.Ok
		require.InDelta(t, 60*hugePool, before, 3*hugePool, "the workers are busy")

		start := time.Now()
		for i := range smallJobs {
			request(fmt.Sprintf("small-%d", i), "small", uint32(i%2))
		}
		ended := func(parity int) func() bool {
			return func() bool {
				for i := parity; i < smallJobs; i += 2 {
					if w.count(codecs.TypeJobCompleted, fmt.Sprintf("small-%d", i)) == 0 {
						return false
					}
				}
				return true
			}
		}
		first := hugeTask*smallJobs/2*smallTasks/hugePool + hugeHops
		all := hugeTask*(hugeWindow+smallJobs*smallTasks)/hugePool + hugeHops
		w.within(first, "small jobs of priority 1", ended(1))
		tookFirst := time.Since(start)
		w.within(all-tookFirst, "all small jobs", ended(0))
		tookAll := time.Since(start)
		require.Greater(t, w.batch("huge.s").Counts.Ok, before, "the big one is not starved")

		d.Look(codecs.GroupController, "huge.s", func(r codecs.Row) {
			b, err := r.AppendBinary(nil)
			require.NoError(t, err)
			require.Less(t, len(b), 32<<10)
			t.Logf("row of the batch: %d bytes", len(b))
		})
		started, _ := w.started()
		records := w.records()
		require.NoError(t, d.Send(codecs.TopicJobs, "huge", &codecs.Event{Type: codecs.TypeJobCommand, ID: "c", Data: &codecs.JobCommand{Id: "c", Verb: "cancel"}}))
		w.pass(10 * time.Millisecond)
		require.Equal(t, 1, w.count(codecs.TypeJobCancelled, "huge"))
		require.Equal(t, codecs.State_cancelled, w.batch("huge.s").State)
		cost := w.records() - records
		require.LessOrEqual(t, cost, 20, "records that a cancel is")
		w.pass(time.Hour)
		after, most := w.started()
		require.LessOrEqual(t, after-started, hugeWindow, "what was released runs out")
		require.Equal(t, 1, most)
		c := w.batch("huge.s").Counts
		require.Equal(t, uint32(million), c.Ok+c.Cancelled)
		t.Logf("beside %d sub-jobs: %d small jobs of priority 1 took %v (bound %v), all %d took %v (bound %v); a cancel of %d open sub-jobs is %d records",
			million, smallJobs/2, tookFirst, first, smallJobs, tookAll, all, c.Cancelled, cost)
	})
}

// records is the number of records in the topics that decisions go to.
func (w *world) records() int {
	n := 0
	for _, topic := range []string{codecs.TopicJobs, codecs.TopicControl, codecs.TopicEvents, codecs.TopicDispatch, codecs.TopicManifest,
		codecs.TopicOutcomes, codecs.TopicDeadLetter} {
		ctx, cancel := context.WithCancel(w.t.Context())
		cancel() // what there is, now
		recs, err := w.Log.Read(ctx, codecs.Topic(sim.Prefix, topic), 0)
		require.True(w.t, err == nil || errors.Is(err, context.Canceled), "%v", err)
		n += len(recs)
	}
	return n
}
