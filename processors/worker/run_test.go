package worker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/worker"
)

// Sub-jobs of two batches over the broker: coalesced reports, retries through a tier, dead letters of what failed.
func TestRunReportsSubjobs(t *testing.T) {
	k := setup(t, 4, 50*time.Millisecond)
	counters := &worker.Counters{}
	cfg := k.config()
	cfg.Counters = counters
	cfg.Handler = func(_ context.Context, t *worker.Task) (worker.Result, error) {
		switch {
		case t.Index%50 == 7:
			return worker.Result{}, worker.Fail(errors.New("broken"))
		case t.Index%10 == 3 && t.Attempt == 1:
			return worker.Result{}, errors.New("once more")
		}
		return worker.Result{}, nil
	}
	tasks := subjobs(500, &codecs.Retry{Attempts: 2, First: 50})
	other := subjobs(20, nil)
	for _, task := range other {
		task.Batch = "other"
		task.Index += 1000
	}
	k.enqueue(append(tasks, other...)...)
	control, dead := k.follow(codecs.TopicControl), k.follow(codecs.TopicDeadLetter)
	stop := k.run(cfg)
	got := map[uint32]*codecs.ReportItem{}
	reports, waits := 0, 0
	for len(got) < 520 {
		ev := receive(t, control)
		reports++
		rep := ev.Data.(*codecs.BatchReport)
		require.Equal(t, "worker@test", rep.Reporter)
		sketch := codecs.NewSketch()
		require.NoError(t, sketch.Merge(rep.Timing.QueueWait))
		waits += int(sketch.Count())
		for _, it := range rep.Items {
			require.NoError(t, codecs.ForEachRange(it, func(first, last uint32) {
				for i := first; i <= last; i++ {
					require.Nil(t, got[i], "task %d is reported twice", i)
					got[i] = it
					require.Equal(t, i >= 1000, ev.Key == "other")
				}
			}))
		}
	}
	stop()
	require.Equal(t, 520, waits, "every task is timed once")
	require.Less(t, reports, 500, "reports are shared")
	for i, it := range got {
		switch {
		case i%50 == 7 && i < 1000 || i == 1007:
			require.Equal(t, codecs.Failed, it.Outcome)
			require.Equal(t, "broken", it.Reason)
		case i%10 == 3 && i < 1000:
			require.Equal(t, codecs.OK, it.Outcome)
			require.Equal(t, uint32(2), it.Attempt, "task %d", i)
		case i%10 == 3:
			require.Equal(t, codecs.Failed, it.Outcome, "no second attempt without a policy")
		default:
			require.Equal(t, codecs.OK, it.Outcome)
		}
	}
	for range 10 + 1 + 2 {
		ev := receive(t, dead)
		require.Equal(t, codecs.TypeTask, ev.Type, "a dead letter is the task itself")
	}
	t.Logf("520 outcomes in %d reports; %s", reports, counters)
}

// The single task of a step and a split are answered on the jobs topic, under the key of the job's row.
func TestRunAnswersSteps(t *testing.T) {
	k := setup(t, 2)
	cfg := k.config()
	cfg.Handler = func(context.Context, *worker.Task) (worker.Result, error) {
		return worker.Result{Payload: &codecs.Payload{Reference: "s3://x"}}, nil
	}
	cfg.Splitter = numbered(2500, "")
	k.enqueue(&codecs.Task{Kind: "task", Id: "j.a", Job: "j", JobKey: "c\x00j", Step: "a", Round: 2, Attempt: 1},
		&codecs.Task{Kind: "split", Id: "j.b", Job: "j", JobKey: "c\x00j", Step: "b", Round: 1, Attempt: 1, Batch: "j.b"})
	jobs := k.follow(codecs.TopicJobs)
	k.run(cfg)
	for range 2 {
		ev := receive(t, jobs)
		switch d := ev.Data.(type) {
		case *codecs.TaskCompleted:
			require.Equal(t, "s3://x", d.Result.Reference)
			require.Equal(t, codecs.OK, d.Outcome)
			require.Equal(t, uint32(2), d.Round)
			require.NotEmpty(t, d.Timing.Run)
		case *codecs.SplitProposed:
			require.Equal(t, uint32(2500), d.Total)
			require.Len(t, d.Chunks, 3)
		default:
			t.Fatalf("unexpected %s", ev.Type)
		}
	}
}

// A restart in the middle: what was running is drained, the rest goes to the next worker, each task ends once.
func restartsInTheMiddle(t *testing.T) {
	k := setup(t, 4)
	var runs atomic.Int64
	cfg := k.config()
	cfg.Handler = func(ctx context.Context, _ *worker.Task) (worker.Result, error) {
		runs.Add(1)
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return worker.Result{}, ctx.Err()
		}
		return worker.Result{}, nil
	}
	const n = 600
	k.enqueue(subjobs(n, nil)...)
	control := k.follow(codecs.TopicControl)
	for i := 1; i <= 3; i++ {
		stop := k.run(cfg)
		require.Eventually(t, func() bool { return runs.Load() >= int64(i*150) }, patience, time.Millisecond)
		stop()
	}
	k.run(cfg)
	got := outcomes(t, control, n)
	require.Len(t, got, n)
	require.Equal(t, int64(n), runs.Load(), "nothing ran twice")
}
