package sim_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/worker"
)

// A fan-out that closes at its deadline marks what has not ended as timed out, and the job goes on. What ends later,
// while the next step runs, changes nothing and is audited.
func TestCloseOnDeadline(t *testing.T) {
	o := &outline{tasks: 30, workers: 10, s3: time.Hour,
		step: &codecs.FanOutSpec{CompleteBy: (150 * time.Second).Milliseconds(), OnDeadline: "close"}}
	inWorld(t, o, func(t *testing.T, w *world) {
		start := time.Now()
		w.request("j")
		w.within(time.Hour, "s3 starts", func() bool { return len(w.s3Inputs()) == 1 })
		require.InDelta(t, 150, time.Since(start).Seconds(), 1, "judged when it is due")
		require.Contains(t, w.s3Inputs()[0], `"ok":20`)
		require.Contains(t, w.s3Inputs()[0], `"timed_out":10`)
		require.Equal(t, 10, w.busy(), "the last ten run on")
		closed := w.batch("j.s2")
		require.Equal(t, codecs.State_completed_with_failures, closed.State)
		require.Zero(t, w.count(codecs.TypeBatchLate, "j.s2"))

		w.pass(10 * time.Minute)
		require.Zero(t, w.busy())
		late := w.batch("j.s2")
		require.Equal(t, closed.Counts.String(), late.Counts.String(), "nothing has changed")
		require.Equal(t, closed.State, late.State)
		require.Equal(t, uint64(10), late.Audit.GetLate())
		require.Positive(t, w.count(codecs.TypeBatchLate, "j.s2"), "and it is told")
		require.Equal(t, 1, w.count(codecs.TypeBatchCompletedWithFailures, "j.s2"))

		ev := w.seen(2*time.Hour, codecs.TypeJobCompleted, "j")
		require.Equal(t, codecs.JobState_completed_with_failures, ev.Data.(*codecs.JobEvent).State)
		require.Equal(t, 1, w.count(codecs.TypeJobCompleted, "j"))
		require.Len(t, w.s3Inputs(), 1)
	})
}

// Without an outcome for no_progress_for the fan-out ends, however busy its workers are: attempts are no progress, and
// one outcome is.
func TestNoProgress(t *testing.T) {
	for _, onDeadline := range []string{"expire", "close"} {
		t.Run(onDeadline, func(t *testing.T) {
			o := &outline{tasks: 12, workers: 1, lasts: 4 * time.Minute,
				step: &codecs.FanOutSpec{NoProgressFor: (9 * time.Minute).Milliseconds(), OnDeadline: onDeadline, Retry: &codecs.Retry{Attempts: 1000, First: 1000}},
				handler: func(_ context.Context, task *worker.Task) (worker.Result, error) {
					if task.Index >= 10 {
						return worker.Result{}, errors.New("not yet")
					}
					return worker.Result{}, nil
				}}
			inWorld(t, o, func(t *testing.T, w *world) {
				start := time.Now()
				w.request("j")
				kind := codecs.TypeJobFailed
				if onDeadline == "close" {
					kind = codecs.TypeJobCompleted
				}
				w.seen(2*time.Hour, kind, "j")
				require.InDelta(t, (10*4 + 9), time.Since(start).Minutes(), 0.1)
				s := w.batch("j.s2")
				require.Equal(t, "no progress within its deadline", s.Reason)
				require.Equal(t, uint32(10), s.Counts.Ok)
				if onDeadline == "close" {
					require.Equal(t, uint32(2), s.Counts.TimedOut)
				}
				_, most := w.started()
				require.Greater(t, most, 1, "there were attempts")
			})
		})
	}
}

// An attempt that takes too long is tried again, each attempt with its whole time, however long its task has waited; the
// last one ends the sub-job as timed out.
func TestAttemptTimeout(t *testing.T) {
	o := &outline{tasks: 20, workers: 2,
		step: &codecs.FanOutSpec{AttemptTimeout: (90 * time.Second).Milliseconds(), Retry: &codecs.Retry{Attempts: 3, First: 1000}},
		handler: func(ctx context.Context, task *worker.Task) (worker.Result, error) {
			if task.Index == 7 || task.Index == 8 && task.Attempt < 3 {
				<-ctx.Done()
				return worker.Result{}, ctx.Err()
			}
			return worker.Result{}, nil
		}}
	inWorld(t, o, func(t *testing.T, w *world) {
		w.request("j")
		w.seen(time.Hour, codecs.TypeJobCompleted, "j")
		s := w.batch("j.s2")
		require.Equal(t, uint32(19), s.Counts.Ok)
		require.Equal(t, uint32(1), s.Counts.TimedOut)
		require.Equal(t, 3, w.startsOf("j.s2/7"))
		require.Equal(t, 3, w.startsOf("j.s2/8"))
		require.Equal(t, 1, w.startsOf("j.s2/19"))
	})
}
