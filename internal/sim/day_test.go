package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sim"
	"github.com/quiesce/quiesce/processors/worker"
)

const (
	dayBetween  = 30 * time.Second // jobs
	dayDeadline = 15 * time.Minute // of the fan-out
	dayJob      = 40 * time.Minute // of the whole job
	dayPatience = 10 * time.Minute // without progress
	dayTolerant = time.Second      // how late a deadline may be judged: hops, no polling
)

func dayType(name, onDeadline string) *codecs.JobType {
	return &codecs.JobType{Name: name, Version: 1, CompleteBy: dayJob.Milliseconds(), Steps: []*codecs.StepSpec{
		{Name: "prepare", Task: &codecs.TaskSpec{Queue: "single", Retry: &codecs.Retry{Attempts: 3, First: 1000}}},
		{Name: "each", After: []string{"prepare"}, FanOut: &codecs.FanOutSpec{Split: "split", Queue: "many", Window: 3, OnDeadline: onDeadline,
			CompleteBy: dayDeadline.Milliseconds(), NoProgressFor: dayPatience.Milliseconds(), AttemptTimeout: (8 * time.Minute).Milliseconds(),
			Retry: &codecs.Retry{Attempts: 3, First: 30_000, Factor: 2}}},
		{Name: "tell", After: []string{"each"}, Task: &codecs.TaskSpec{Queue: "single"}},
	}}
}

// A day of jobs with every kind of clock in them: retries with growing delays, attempt time-outs, deadlines that close,
// deadlines that end the job, no progress, workers that crash. Each job ends, once; a deadline is judged when it is due.
func TestADay(t *testing.T) {
	for _, seed := range seeds(t, 1) {
		synctest.Test(t, func(t *testing.T) { runDay(t, seed) })
	}
}

type dayJobs struct {
	t       *testing.T
	ends    map[string]string // job -> last event
	started map[string]int64
	reasons map[string]int
	late    int
}

func (d *dayJobs) see(ev *codecs.Event) {
	e, ok := ev.Data.(*codecs.JobEvent)
	if !ok {
		if ev.Type == codecs.TypeBatchLate {
			d.late++
		}
		return
	}
	took := time.Duration(e.EndedAt-e.StartedAt) * time.Millisecond
	switch ev.Type {
	case codecs.TypeStepCompleted:
		if e.Step == "each" && e.Counts.GetTimedOut() > 0 {
			d.reasons["closed"]++
		}
		if e.Step == "each" {
			require.LessOrEqual(d.t, took, dayDeadline+dayTolerant, ev.Key)
		}
	case codecs.TypeJobCompleted, codecs.TypeJobFailed, codecs.TypeJobCancelled:
		require.Empty(d.t, d.ends[ev.Key], "job %s ends twice", ev.Key)
		d.ends[ev.Key] = ev.Type
		require.LessOrEqual(d.t, took, dayJob+dayTolerant, ev.Key)
		d.reasons[ev.Type+" "+e.Reason]++
	}
}

func runDay(t *testing.T, seed uint64) {
	dep, err := sim.Start(t.Context(), sim.Config{Types: []*codecs.JobType{dayType("strict", "expire"), dayType("closing", "close")}, Log: quiet})
	require.NoError(t, err)
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(seed, 1))
	handler := func(ctx context.Context, _ *worker.Task) (worker.Result, error) {
		mu.Lock()
		lasts, x := time.Duration(rnd.ExpFloat64()*float64(time.Minute)), rnd.Float64()
		if rnd.IntN(30) == 0 {
			lasts *= 20
		}
		mu.Unlock()
		switch {
		case x < 0.01:
			return worker.Result{}, sleep(ctx, lasts/2, sim.ErrCrash)
		case x < 0.1:
			return worker.Result{}, sleep(ctx, lasts, errors.New("not this time"))
		case x < 0.12:
			return worker.Result{}, sleep(ctx, lasts, worker.Skip("nothing to do"))
		}
		return worker.Result{}, sleep(ctx, lasts, nil)
	}
	split := func(_ context.Context, _ *worker.Task, emit func(*codecs.ManifestTask) error) error {
		mu.Lock()
		n := rnd.IntN(12)
		mu.Unlock()
		return numbered(n)(nil, nil, emit)
	}
	dep.Work(sim.Pool{Workers: 20, Config: worker.Config{Queue: "single", Handler: handler}})
	dep.Work(sim.Pool{Workers: 2, Config: worker.Config{Queue: "split", Splitter: split}})
	dep.Work(sim.Pool{Workers: 30, Config: worker.Config{Queue: "many", Handler: handler}})

	d := &dayJobs{t: t, ends: map[string]string{}, started: map[string]int64{}, reasons: map[string]int{}}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // the day, and the time that the last job may take
		jobs := int(24 * time.Hour / dayBetween)
		for i := range jobs {
			name := "strict"
			if i%2 == 1 {
				name = "closing"
			}
			key := fmt.Sprintf("j%d", i)
			if err := dep.Send(codecs.TopicJobs, key, &codecs.Event{Type: codecs.TypeJobRequested, ID: key, Data: &codecs.JobRequested{Type: name}}); err != nil {
				t.Error(err)
			}
			if i%40 == 7 {
				cancelled := &codecs.JobCommand{Id: "c" + key, Verb: "cancel", Args: &codecs.JobCommandArgs{Reason: "changed my mind"}}
				time.AfterFunc(3*time.Minute, func() {
					_ = dep.Send(codecs.TopicJobs, key, &codecs.Event{Type: codecs.TypeJobCommand, ID: "c" + key, Data: cancelled})
				})
			}
			time.Sleep(dayBetween)
		}
		time.Sleep(dayJob + time.Hour)
		cancel()
	}()
	start := time.Now()
	require.NoError(t, dep.Follow(ctx, codecs.TopicEvents, func(ev *codecs.Event) error { d.see(ev); return nil }))
	require.NoError(t, dep.Stop())
	require.Len(t, d.ends, int(24*time.Hour/dayBetween), "every job ends")
	require.GreaterOrEqual(t, time.Since(start), 24*time.Hour)
	t.Logf("seed %d: %d jobs in %v: %v, %d late", seed, len(d.ends), time.Since(start), d.reasons, d.late)
	for _, kind := range []string{"closed", codecs.TypeJobCompleted + " "} {
		require.Positive(t, d.reasons[kind], "%q happened: %v", kind, d.reasons)
	}
}
