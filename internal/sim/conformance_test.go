package sim_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sim"
	"github.com/quiesce/quiesce/processors/worker"
)

// TestConformance holds the entries that take hours.
func TestConformance(t *testing.T) {
	t.Run("C17", lastSubjobComesBackLate)
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
