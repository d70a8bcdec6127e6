package sim_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sim"
	"github.com/quiesce/quiesce/processors/batch"
	"github.com/quiesce/quiesce/processors/job"
	"github.com/quiesce/quiesce/processors/worker"
)

// TestConformance holds the entries that take hours.
func TestConformance(t *testing.T) {
	t.Run("C17", lastSubjobComesBackLate)
	t.Run("C43", subjobsOutliveTheirJob)
	t.Run("C43 parent", jobOutlivesItsRetention)
}

// lastSubjobComesBackLate: the worker that has the last sub-job is killed, and for 20 minutes nobody notices. The step
// ends when the sub-job has run elsewhere, once.
func lastSubjobComesBackLate(t *testing.T) {
	const tasks, away = 10, 20 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		d, err := sim.Start(t.Context(), sim.Config{Types: []*codecs.JobType{accounts}, Log: quiet})
		require.NoError(t, err)
		ok := func(context.Context, *worker.Task) (worker.Result, error) { return worker.Result{}, nil }
		d.Work(sim.Pool{Workers: 1, Config: worker.Config{Queue: "prepare", Handler: ok}})
		d.Work(sim.Pool{Workers: 1, Config: worker.Config{Queue: "split", Splitter: numbered(tasks)}})
		attempts := 0
		d.Work(sim.Pool{Workers: 1, Noticed: away, Config: worker.Config{Queue: "render", Handler: func(ctx context.Context, task *worker.Task) (worker.Result, error) {
			if task.Index == tasks-1 {
				if attempts++; attempts == 1 {
					return worker.Result{}, sim.ErrCrash
				}
			}
			return worker.Result{}, sleep(ctx, time.Second, nil)
		}}})
		w := worldOf(t, d)
		w.follow()
		require.NoError(t, d.Send(codecs.TopicJobs, "j", &codecs.Event{Type: codecs.TypeJobRequested, ID: "j", Data: &codecs.JobRequested{Type: "accounts"}}))
		start := time.Now()
		w.pass(away - time.Minute)
		require.Equal(t, 1, w.count(codecs.TypeStepCompleted, "j"), "s1; the fan-out waits for its last sub-job")
		require.Equal(t, uint32(tasks-1), w.batch("j.s2").Counts.Ok)
		w.seen(away, codecs.TypeJobCompleted, "j")
		require.Greater(t, time.Since(start), away)
		w.pass(time.Hour)
		require.Equal(t, 2, attempts)
		require.Equal(t, 1, w.count(codecs.TypeBatchCompleted, "j.s2"))
		require.Equal(t, 1, w.count(codecs.TypeJobCompleted, "j"))
		require.Equal(t, 3, w.count(codecs.TypeStepCompleted, "j"))
		require.NoError(t, d.Stop())
	})
}

// subjobsOutliveTheirJob: a job is cancelled while its sub-jobs run, and they run on for longer than the job is kept. What
// they report then makes neither the job nor its batch live again.
func subjobsOutliveTheirJob(t *testing.T) {
	const day = 24 * time.Hour
	inWorld(t, &outline{tasks: 3, lasts: 10 * day}, func(t *testing.T, w *world) {
		w.request("j")
		w.within(time.Minute, "all sub-jobs run", func() bool { return w.busy() == 3 })
		w.command("stop", "cancel", nil)
		w.seen(time.Minute, codecs.TypeBatchCancelled, "j.s2")
		state := func() (jobs codecs.JobState_Code, batches codecs.State_Code) {
			w.Look(codecs.GroupWorkflow, "j", func(r codecs.Row) {
				if row := r.(*job.Row).Job; row != nil {
					jobs = row.State
				}
			})
			w.Look(codecs.GroupController, "j.s2", func(r codecs.Row) {
				if s, ok := r.(*batch.Row).Snapshot(); ok {
					batches = s.State
				}
			})
			return jobs, batches
		}
		w.pass(6 * day)
		j, b := state()
		require.Equal(t, codecs.JobState_cancelled, j, "kept from its end on")
		require.Equal(t, codecs.State_cancelled, b)
		w.pass(2 * day)
		j, b = state()
		require.Contains(t, []codecs.JobState_Code{codecs.JobState_unspecified, codecs.JobState_collected}, j)
		require.Contains(t, []codecs.State_Code{codecs.State_unspecified, codecs.State_collected}, b)
		require.Equal(t, 3, w.busy(), "they still run")
		w.pass(5 * day)
		require.Zero(t, w.busy())
		jobs, batches := state()
		require.Equal(t, j, jobs)
		require.Equal(t, b, batches)
		for _, kind := range []string{codecs.TypeBatchCompleted, codecs.TypeBatchCompletedWithFailures} {
			require.Zero(t, w.count(kind, "j.s2"))
		}
		require.Equal(t, 1, w.count(codecs.TypeBatchCancelled, "j.s2"))
		require.Equal(t, 1, w.count(codecs.TypeBatchStarted, "j.s2"))
		require.Equal(t, 1, w.count(codecs.TypeJobCancelled, "j"))
	})
}

// jobOutlivesItsRetention: a job runs for longer after a fan-out than ended jobs are kept. The batch of the fan-out is
// there as long as the job is, so that a redrive runs the one sub-job that failed.
func jobOutlivesItsRetention(t *testing.T) {
	const day = 24 * time.Hour
	broken := true
	o := &outline{tasks: 3, s3: 10 * day, handler: func(_ context.Context, task *worker.Task) (worker.Result, error) {
		if broken && task.Index == 1 {
			return worker.Result{}, worker.Fail(errors.New("no"))
		}
		return worker.Result{}, nil
	}}
	inWorld(t, o, func(t *testing.T, w *world) {
		w.request("j")
		w.pass(11 * day)
		require.Equal(t, 1, w.count(codecs.TypeJobCompleted, "j"))
		require.Equal(t, "completed_with_failures", w.batch("j.s2").State.String())
		broken = false
		w.command("again", "redrive", nil)
		require.Empty(t, w.answer("again"))
		w.pass(11 * day)
		require.Equal(t, 2, w.count(codecs.TypeJobCompleted, "j"))
		require.Equal(t, 1, w.startedAgain(), "the one that failed")
		w.job("j", func(r *codecs.JobRow) { require.Equal(t, codecs.JobState_completed, r.State) })
		w.pass(8 * day)
		w.Look(codecs.GroupController, "j.s2", func(r codecs.Row) {
			s, ok := r.(*batch.Row).Snapshot()
			require.True(t, !ok || s.State == codecs.State_collected, "collected with its job: %v", r)
		})
	})
}
