package sim_test

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

// Every command is sent twice with one id: it acts once. The same with another id changes nothing, or is refused.

// A cancelled job ends at once, once; what its window had released runs out, and nothing else starts.
func TestCancel(t *testing.T) {
	inWorld(t, &outline{tasks: 1000, step: &codecs.FanOutSpec{Window: 10}}, func(t *testing.T, w *world) {
		w.request("j")
		w.pass(5*time.Minute + 30*time.Second)
		before, _ := w.started()
		require.Greater(t, before, 30)
		running := w.busy()
		require.Positive(t, running)
		w.command("c1", "cancel", &codecs.JobCommandArgs{Reason: "wrong month"})
		require.Empty(t, w.answer("c1"))
		ev := w.seen(time.Second, codecs.TypeJobCancelled, "j")
		require.Equal(t, "wrong month", ev.Data.(*codecs.JobEvent).Reason)
		w.command("c2", "cancel", nil)
		require.Contains(t, w.answer("c2"), "has ended")
		w.pass(time.Hour)
		after, most := w.started()
		require.Equal(t, before, after, "nothing else starts")
		require.Equal(t, 1, most)
		s := w.batch("j.s2")
		require.Equal(t, codecs.State_cancelled, s.State)
		require.Equal(t, uint32(1000), s.Counts.Ok+s.Counts.Cancelled)
		require.Equal(t, uint64(running), s.Audit.Late, "what ran out came late")
		require.Equal(t, 1, w.count(codecs.TypeJobCancelled, "j"))
		require.Equal(t, 1, w.count(codecs.TypeBatchCancelled, "j.s2"))
		require.Equal(t, 1, w.count(codecs.TypeBatchDrained, "j.s2"), "and it is said when nothing runs any more")
		require.Empty(t, w.s3Inputs(), "s3 does not run")
	})
}

// A paused job releases nothing and starts no step, also when its last sub-job ends meanwhile; resumed, it goes on.
func TestPauseAndResume(t *testing.T) {
	inWorld(t, &outline{tasks: 100, step: &codecs.FanOutSpec{Window: 10}}, func(t *testing.T, w *world) {
		w.request("j")
		w.pass(3*time.Minute + 30*time.Second)
		w.command("p1", "pause", nil)
		w.command("p2", "pause", nil)
		require.Empty(t, w.answer("p2"), "it is paused, as it shall be")
		w.pass(time.Hour)
		require.Zero(t, w.busy())
		half, _ := w.started()
		require.Less(t, half, 60)
		w.command("r1", "resume", nil)
		w.command("r2", "resume", nil)
		w.within(10*time.Minute, "the last ones run", func() bool { n, _ := w.started(); return n == 100 })
		w.command("p3", "pause", nil)
		w.pass(time.Hour)
		require.Equal(t, uint32(100), w.batch("j.s2").Counts.Ok)
		require.Zero(t, w.count(codecs.TypeJobCompleted, "j"), "complete, but paused")
		require.Empty(t, w.s3Inputs())
		w.command("r3", "resume", nil)
		w.seen(time.Minute, codecs.TypeJobCompleted, "j")
		_, most := w.started()
		require.Equal(t, 1, most)
		require.Len(t, w.s3Inputs(), 1)
	})
}

// A redrive runs what failed, from the recorded list, as the next round: the splitter is not asked again, what was ok stays.
func TestRedrive(t *testing.T) {
	var mended atomic.Bool
	var splits atomic.Int32
	o := &outline{step: &codecs.FanOutSpec{Policy: &codecs.Policy{Kind: "tolerate", Tolerate: "10%", MinSample: 100}}, workers: 100,
		splitter: func(ctx context.Context, task *worker.Task, emit func(*codecs.ManifestTask) error) error {
			return numbered(100+int(splits.Add(1)))(ctx, task, emit)
		},
		handler: func(_ context.Context, task *worker.Task) (worker.Result, error) {
			if task.Index%4 == 1 && !mended.Load() {
				return worker.Result{}, errors.New("broken")
			}
			return worker.Result{}, nil
		}}
	inWorld(t, o, func(t *testing.T, w *world) {
		w.request("j")
		w.seen(time.Hour, codecs.TypeJobFailed, "j")
		w.pass(time.Hour)
		require.Equal(t, codecs.State_failed, w.batch("j.s2").State)
		ok := w.batch("j.s2").Counts.Ok
		mended.Store(true)
		w.command("r1", "redrive", nil)
		require.Empty(t, w.answer("r1"))
		w.command("r2", "redrive", nil)
		require.Contains(t, w.answer("r2"), "only a job that ended")
		w.seen(time.Hour, codecs.TypeJobCompleted, "j")
		s := w.batch("j.s2")
		require.Equal(t, uint32(2), s.Round)
		require.Equal(t, uint32(101), s.Counts.Ok)
		require.Equal(t, int32(1), splits.Load(), "the list is the recorded one")
		again := w.startedAgain()
		require.LessOrEqual(t, again, 101-int(ok), "what was ok does not run again")
		require.Positive(t, again)
		w.command("r3", "redrive", nil)
		require.Contains(t, w.answer("r3"), "only a job that ended")
		require.Equal(t, 1, w.count(codecs.TypeJobCompleted, "j"))
	})
}

// A deadline that is moved is the new one, later or earlier, of the fan-out and of the job.
func TestExtend(t *testing.T) {
	for name, c := range map[string]struct {
		step string
		to   time.Duration // after the job's start
		kind string
	}{
		"fan-out, later":   {"s2", 2 * time.Hour, codecs.TypeJobCompleted},
		"fan-out, earlier": {"s2", 4 * time.Minute, codecs.TypeJobFailed},
		"job, later":       {"", 2 * time.Hour, codecs.TypeJobFailed}, // the fan-out's is what matters
		"job, earlier":     {"", 4 * time.Minute, codecs.TypeJobFailed},
	} {
		t.Run(name, func(t *testing.T) {
			o := &outline{tasks: 100, step: &codecs.FanOutSpec{Window: 10, CompleteBy: (8 * time.Minute).Milliseconds()},
				jobBy: 9 * time.Minute}
			if c.step != "" {
				o.jobBy = 0
			}
			inWorld(t, o, func(t *testing.T, w *world) {
				start := time.Now()
				w.request("j")
				w.pass(3 * time.Minute)
				args := &codecs.JobCommandArgs{Step: c.step, Deadlines: &codecs.Deadlines{CompleteBy: start.Add(c.to).UnixMilli()}}
				w.command("e1", "extend", args)
				w.command("e2", "extend", args)
				require.Empty(t, w.answer("e1"))
				require.Empty(t, w.answer("e2"), "absolute: once more is the same")
				w.seen(time.Hour, c.kind, "j")
				took := time.Since(start)
				if c.kind == codecs.TypeJobFailed {
					require.InDelta(t, min(c.to, 8*time.Minute).Seconds(), took.Seconds(), 1, "judged when it is due")
				} else {
					require.Greater(t, took, 8*time.Minute)
					require.Equal(t, uint32(100), w.batch("j.s2").Counts.Ok)
				}
				w.command("e3", "extend", args)
				require.Contains(t, w.answer("e3"), "has ended")
			})
		})
	}
}

// A policy that is changed while the batch runs is judged at once, by the failures there are.
func TestPolicyWhileRunning(t *testing.T) {
	o := &outline{tasks: 100, step: &codecs.FanOutSpec{Window: 10}, handler: func(_ context.Context, task *worker.Task) (worker.Result, error) {
		if task.Index%10 == 1 {
			return worker.Result{}, errors.New("broken")
		}
		return worker.Result{}, nil
	}}
	inWorld(t, o, func(t *testing.T, w *world) {
		w.request("j")
		w.pass(5*time.Minute + 30*time.Second)
		require.Equal(t, uint32(5), w.batch("j.s2").Counts.Failed)
		for range 2 {
			w.command("p1", "policy", &codecs.JobCommandArgs{Step: "s2", Policy: &codecs.Policy{Kind: "tolerate", Tolerate: "7"}})
		}
		w.pass(time.Minute)
		require.Equal(t, codecs.State_sealed, w.batch("j.s2").State, "6 of 7")
		w.command("p2", "policy", &codecs.JobCommandArgs{Step: "s2", Policy: &codecs.Policy{Kind: "fail_fast"}})
		w.seen(time.Second, codecs.TypeJobFailed, "j")
		require.Equal(t, codecs.State_failed, w.batch("j.s2").State)
		w.command("p3", "policy", &codecs.JobCommandArgs{Step: "s2", Policy: &codecs.Policy{Kind: "continue"}})
		require.Contains(t, w.answer("p3"), "has ended")
		w.pass(time.Hour)
		require.Equal(t, codecs.State_failed, w.batch("j.s2").State)
	})
}

// The window is the most that runs at once; one that is changed holds from then on.
func TestWindowWhileRunning(t *testing.T) {
	inWorld(t, &outline{tasks: 1000, step: &codecs.FanOutSpec{Window: 4}, workers: 50}, func(t *testing.T, w *world) {
		w.request("j")
		w.pass(5*time.Minute + 30*time.Second)
		require.Equal(t, 4, w.peak())
		w.command("w1", "window", &codecs.JobCommandArgs{Step: "s2", Window: 30})
		w.command("w2", "window", &codecs.JobCommandArgs{Step: "s2", Window: 30})
		w.pass(5 * time.Minute)
		require.Equal(t, 30, w.peak())
		w.command("w3", "window", &codecs.JobCommandArgs{Step: "s2", Window: 8})
		w.pass(2 * time.Minute) // the 30 end
		w.busy()
		w.pass(5 * time.Minute)
		require.Equal(t, 8, w.peak())
		w.seen(3*time.Hour, codecs.TypeJobCompleted, "j")
		n, most := w.started()
		require.Equal(t, 1000, n)
		require.Equal(t, 1, most)
	})
}
