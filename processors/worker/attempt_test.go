package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/queue"
	"github.com/quiesce/quiesce/processors/worker"
)

// skip is worker.Skip, which is not a test's Skip.
var skip = worker.Skip

// What a handler does decides the outcome, the number of attempts and the reason.
func TestOutcomes(t *testing.T) {
	three := &codecs.Retry{Attempts: 3, First: 1}
	for name, c := range map[string]struct {
		handler  worker.Handler
		outcome  codecs.Outcome_Code
		attempts int32
		reason   string
		timeout  int64
	}{
		"ok": {handler: func(context.Context, *worker.Task) (worker.Result, error) { return worker.Result{}, nil },
			outcome: codecs.OK, attempts: 1},
		"skip": {handler: func(context.Context, *worker.Task) (worker.Result, error) {
			return worker.Result{}, skip("nothing to do")
		}, outcome: codecs.Skipped, attempts: 1, reason: "nothing to do"},
		"fail": {handler: func(context.Context, *worker.Task) (worker.Result, error) {
			return worker.Result{}, worker.Fail(errors.New("never"))
		}, outcome: codecs.Failed, attempts: 1, reason: "never"},
		"error": {handler: func(context.Context, *worker.Task) (worker.Result, error) {
			return worker.Result{}, errors.New("not yet")
		},
			outcome: codecs.Failed, attempts: 3, reason: "not yet"},
		"ok at last": {handler: func(_ context.Context, t *worker.Task) (worker.Result, error) {
			if t.Attempt < 3 {
				return worker.Result{}, errors.New("not yet")
			}
			return worker.Result{}, nil
		}, outcome: codecs.OK, attempts: 3},
		"panic":     {handler: func(context.Context, *worker.Task) (worker.Result, error) { panic("oh") }, outcome: codecs.Failed, attempts: 3, reason: "panic: oh"},
		"timed out": {handler: hang, outcome: codecs.TimedOut, attempts: 3, reason: "timed out after 20ms", timeout: 20},
		"long reason": {handler: func(context.Context, *worker.Task) (worker.Result, error) {
			return worker.Result{}, worker.Fail(errors.New(strings.Repeat("ä", 5000)))
		}, outcome: codecs.Failed, attempts: 1, reason: strings.Repeat("ä", 510)},
	} {
		t.Run(name, func(t *testing.T) {
			var attempts atomic.Int32
			task := subjobs(1, three)[0]
			task.AttemptTimeout = c.timeout
			ends, _ := memory(t, worker.Config{Handler: func(ctx context.Context, t *worker.Task) (worker.Result, error) {
				if n := attempts.Add(1); uint32(n) != t.Attempt {
					return worker.Result{}, worker.Fail(errors.New("attempt is not counted"))
				}
				return c.handler(ctx, t)
			}}, 1, task)
			require.Equal(t, c.outcome, ends[0].Outcome, ends[0].Reason)
			require.Contains(t, ends[0].Reason, c.reason)
			require.LessOrEqual(t, len(ends[0].Reason), 1024)
			require.Equal(t, c.attempts, attempts.Load())
		})
	}
}

func hang(ctx context.Context, _ *worker.Task) (worker.Result, error) {
	<-ctx.Done()
	return worker.Result{}, ctx.Err()
}

func TestBackoff(t *testing.T) {
	r := &codecs.Retry{Attempts: 9, First: 1000, Factor: 4, Max: 60_000}
	for n, want := range []time.Duration{time.Second, 4 * time.Second, 16 * time.Second, time.Minute, time.Minute} {
		require.Equal(t, want, worker.Backoff(r, uint32(n+1)))
	}
	require.Equal(t, 8*time.Second, worker.Backoff(&codecs.Retry{First: 1000}, 4))
	require.Zero(t, worker.Backoff(nil, 1))
	require.Positive(t, worker.Backoff(&codecs.Retry{First: 1 << 40, Factor: 100}, 100))
}

// Attempts are apart by the backoff, also where that is longer than any tier; waiting has no time-out.
func retriesFollowTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		task := subjobs(1, &codecs.Retry{Attempts: 4, First: 1000, Factor: 10})[0]
		task.AttemptTimeout = 500
		ends, _ := memory(t, worker.Config{Handler: func(ctx context.Context, t *worker.Task) (worker.Result, error) {
			at = append(at, time.Now())
			if t.Attempt == 2 {
				return hang(ctx, t)
			}
			if t.Attempt < 4 {
				return worker.Result{}, errors.New("no")
			}
			return worker.Result{}, nil
		}}, 1, task)
		require.Equal(t, codecs.OK, ends[0].Outcome)
		require.Equal(t, uint32(4), ends[0].Task.Attempt)
		require.Equal(t, []time.Duration{time.Second, 10*time.Second + 500*time.Millisecond, 100 * time.Second},
			[]time.Duration{at[1].Sub(at[0]), at[2].Sub(at[1]), at[3].Sub(at[2])})
		require.Zero(t, ends[0].QueueWait, "to wait for a retry is not to wait in the queue")
	})
}

// A handler that ignores its time-out is left alone: the task ends, the slot is gone, and after some of them the worker
// gives up.
func TestHandlersThatIgnoreTheirTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := queue.NewMemory()
		tasks := subjobs(20, nil)
		for _, task := range tasks {
			task.AttemptTimeout = 1000
		}
		require.NoError(t, m.Enqueue(t.Context(), "q", 0, tasks...))
		block := make(chan struct{})
		defer close(block)
		rec := &worker.Recorder{}
		counters := &worker.Counters{}
		err := worker.Work(t.Context(), worker.Config{Queue: "q", Log: quiet, Concurrency: 4, Stuck: 3, Counters: counters,
			Handler: func(_ context.Context, t *worker.Task) (worker.Result, error) {
				if t.Index%5 == 0 && t.Index < 15 {
					<-block // deaf
				}
				return worker.Result{}, nil
			}}, m.Consumer("q"), m, rec)
		require.ErrorIs(t, err, worker.ErrStuck)
		out := map[codecs.Outcome_Code]int{}
		for _, e := range rec.Ends() {
			out[e.Outcome]++
		}
		require.Equal(t, 3, out[codecs.TimedOut], counters)
		require.Equal(t, 17, out[codecs.OK], "the others went on meanwhile: %v", counters)
	})
}

// An interrupted attempt reports nothing, whatever the handler returns; the task is delivered again and not counted.
func interruptedAttemptsReportNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := queue.NewMemory()
		require.NoError(t, m.Enqueue(t.Context(), "q", 0, subjobs(3, nil)...))
		rec := &worker.Recorder{}
		ctx, cancel := context.WithCancel(t.Context())
		running := make(chan struct{}, 3)
		done := make(chan error)
		c := m.Consumer("q")
		go func() {
			done <- worker.Work(ctx, worker.Config{Queue: "q", Log: quiet, DrainTimeout: 10 * time.Second, Handler: func(ctx context.Context, t *worker.Task) (worker.Result, error) {
				running <- struct{}{}
				if t.Index == 0 { // ends within the drain
					<-time.After(5 * time.Second)
					return worker.Result{}, nil
				}
				<-ctx.Done()
				if t.Index == 1 {
					return worker.Result{}, nil
				}
				return worker.Result{}, ctx.Err()
			}}, c, m, rec)
		}()
		for range 3 {
			<-running
		}
		start := time.Now()
		cancel()
		require.NoError(t, <-done)
		require.Equal(t, 10*time.Second, time.Since(start))
		require.NoError(t, c.Close())
		require.Len(t, rec.Ends(), 1)
		require.Equal(t, uint32(0), rec.Ends()[0].Task.Index)
		ds, err := m.Consumer("q").Receive(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, ds, 2)
		require.Equal(t, 1, ds[0].Count)
	})
}

// What a worker holds goes to another one while its handlers run: they end, whatever they return is not reported, and the
// other one's outcome is the only one.
func revokedAttemptsReportNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := queue.NewMemory()
		require.NoError(t, m.Enqueue(t.Context(), "q", 0, subjobs(2, nil)...))
		first := &worker.Recorder{}
		running := make(chan struct{}, 2)
		done := make(chan error)
		c := m.Consumer("q")
		go func() {
			done <- worker.Work(t.Context(), worker.Config{Queue: "q", Log: quiet, Handler: func(ctx context.Context, t *worker.Task) (worker.Result, error) {
				running <- struct{}{}
				<-ctx.Done()
				if t.Index == 0 {
					return worker.Result{}, nil
				}
				return worker.Result{}, ctx.Err()
			}}, c, m, first)
		}()
		<-running
		<-running
		c.Crash()
		require.NoError(t, <-done)
		require.Empty(t, first.Ends())

		ctx, cancel := context.WithCancel(t.Context())
		second := &worker.Recorder{OnEnd: func(*worker.End) { running <- struct{}{} }}
		go func() {
			done <- worker.Work(ctx, worker.Config{Queue: "q", Log: quiet, Handler: func(context.Context, *worker.Task) (worker.Result, error) {
				return worker.Result{}, nil
			}}, m.Consumer("q"), m, second)
		}()
		<-running
		<-running
		cancel()
		require.NoError(t, <-done)
		require.Len(t, second.Ends(), 2)
		for _, e := range second.Ends() {
			require.Equal(t, codecs.OK, e.Outcome)
		}
	})
}
