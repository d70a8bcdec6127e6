package worker_test

import (
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/queue"
	"github.com/quiesce/quiesce/processors/worker"
)

// The founding example: 10,000 tasks of a minute within 90 minutes.
var founding = worker.Load{Tasks: 10_000, Run: time.Minute, Deadline: 90 * time.Minute, Retries: 0.05, Crashes: 0.01}

func TestSize(t *testing.T) {
	p, err := worker.Size(founding)
	require.NoError(t, err)
	require.Equal(t, 112, p.LowerBound)
	require.Greater(t, p.Workers, p.LowerBound)
	require.Less(t, p.Workers, 150)
	ideal := founding
	ideal.Retries, ideal.Crashes, ideal.PerTask = 0, 0, time.Nanosecond
	p, err = worker.Size(ideal)
	require.NoError(t, err)
	require.Equal(t, 112, p.LowerBound)
	require.LessOrEqual(t, p.Workers, 114)
	for _, bad := range []worker.Load{{}, {Tasks: 1, Run: 2, Deadline: 1}, {Tasks: 1, Run: 1, Deadline: 2, Retries: 1},
		{Tasks: 100, Run: time.Minute, Deadline: 2 * time.Minute, Retries: 0.5}} {
		_, err := worker.Size(bad)
		require.Error(t, err, "%+v", bad)
	}
}

// A discrete-event run of workers over the in-memory queue with a virtual clock: with as many workers as Size says, every
// seed meets the deadline and every task ends ok, once.
func TestFoundingTarget(t *testing.T) {
	seeds := uint64(5)
	if os.Getenv("QUIESCE_TEST_LONG") == "1" {
		seeds = 100
	}
	plan, err := worker.Size(founding)
	require.NoError(t, err)
	t.Log(plan)
	worst := time.Duration(0)
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			f := &farm{t: t, seed: seed, load: founding, m: queue.NewMemory(), tries: map[uint32]uint64{}, outcomes: map[uint32]codecs.Outcome_Code{}}
			took := f.run(plan.Workers)
			t.Logf("seed %d: %v, %d crashes, %d retries", seed, took, f.crashes, f.retries)
			require.LessOrEqual(t, took, founding.Deadline, "seed %d", seed)
			worst = max(worst, took)
		})
	}
	t.Logf("slowest of %d: %v of %v", seeds, worst, founding.Deadline)
}

// farm is a set of worker processes of one handler each. A process that crashes is noticed after half an outage; a new
// one is there after the other half.
type farm struct {
	t    *testing.T
	seed uint64
	load worker.Load
	m    *queue.Memory
	wg   sync.WaitGroup

	mu       sync.Mutex
	tries    map[uint32]uint64
	outcomes map[uint32]codecs.Outcome_Code
	crashes  int
	retries  int
	done     context.CancelFunc
}

func (f *farm) run(workers int) time.Duration {
	ctx, cancel := context.WithCancel(f.t.Context())
	f.done = cancel
	start := time.Now()
	require.NoError(f.t, f.m.Enqueue(ctx, "q", 0, subjobs(f.load.Tasks, &codecs.Retry{Attempts: 20, First: 1000, Factor: 1})...))
	for range workers {
		f.wg.Go(func() { f.process(ctx) })
	}
	<-ctx.Done()
	took := time.Since(start)
	f.wg.Wait()
	for i := range uint32(f.load.Tasks) {
		require.Equal(f.t, codecs.OK, f.outcomes[i])
	}
	require.Positive(f.t, f.crashes)
	require.Positive(f.t, f.retries)
	return took
}

// process runs workers one after the other, each until it crashes.
func (f *farm) process(ctx context.Context) {
	const outage = time.Minute // the default of Load
	for ctx.Err() == nil {
		alive, die := context.WithCancel(ctx)
		c := f.m.Consumer("q")
		cfg := worker.Config{Queue: "q", Concurrency: 1, Log: quiet, DrainTimeout: time.Nanosecond, Handler: func(ctx context.Context, t *worker.Task) (worker.Result, error) {
			fate := f.fate(t)
			wait(ctx, time.Duration(fate.lasts*float64(f.load.Run)))
			switch {
			case ctx.Err() != nil:
			case fate.crash:
				wait(ctx, outage/2) // dead, and nobody knows
				c.Crash()
				die()
				wait(ctx, time.Hour)
			case fate.retry:
				return worker.Result{}, context.DeadlineExceeded
			}
			return worker.Result{}, nil
		}}
		rec := &worker.Recorder{Drop: true, OnEnd: f.ended}
		_ = worker.Work(alive, cfg, c, f.m, rec) // of a dead process
		die()
		_ = c.Close()
		wait(ctx, outage/2)
	}
}

type fate struct {
	crash, retry bool
	lasts        float64 // share of the task's time
}

func (f *farm) fate(t *worker.Task) fate {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tries[t.Index]++
	rnd := rand.New(rand.NewPCG(f.seed, uint64(t.Index)<<16|f.tries[t.Index]))
	switch x := rnd.Float64(); {
	case x < f.load.Crashes:
		f.crashes++
		return fate{crash: true, lasts: rnd.Float64()}
	case x < f.load.Crashes+f.load.Retries:
		f.retries++
		return fate{retry: true, lasts: 1}
	}
	return fate{lasts: 1}
}

func (f *farm) ended(e *worker.End) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, twice := f.outcomes[e.Task.Index]; twice {
		f.t.Errorf("task %d ended twice", e.Task.Index)
	}
	f.outcomes[e.Task.Index] = e.Outcome
	if len(f.outcomes) == f.load.Tasks {
		f.done()
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
