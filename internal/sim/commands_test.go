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
	"github.com/quiesce/quiesce/processors/job"
	"github.com/quiesce/quiesce/processors/worker"
)

// Jobs of every kind under commands at random, to them or past them to their batches, sent once or twice: whatever was
// said, in whatever order, every job ends when it may, tells each end once, and its counts add up.
func TestCommandsAtRandom(t *testing.T) {
	for _, seed := range seeds(t, 10) {
		synctest.Test(t, func(t *testing.T) { runCommands(t, seed) })
	}
}

const commandedJobs = 60

// randomType is a job of two fan-outs with a task between them.
func randomType(rnd *rand.Rand, name string) *codecs.JobType {
	fan := func() *codecs.FanOutSpec {
		f := &codecs.FanOutSpec{Split: "split", Queue: "render", Window: rnd.Uint32N(6), OpenChildren: rnd.IntN(2) == 0,
			Retry: &codecs.Retry{Attempts: 1 + rnd.Uint32N(3), First: 1000}, OnDeadline: []string{"expire", "close"}[rnd.IntN(2)],
			Policy: []*codecs.Policy{nil, {Kind: "fail_fast"}, {Kind: "tolerate", Tolerate: "20%", MinSample: 5}, {Kind: "tolerate", Tolerate: "2"}}[rnd.IntN(4)]}
		if rnd.IntN(2) == 0 {
			f.CompleteBy = (time.Hour).Milliseconds()
		}
		if rnd.IntN(2) == 0 {
			f.NoProgressFor = (20 * time.Minute).Milliseconds()
		}
		return f
	}
	return &codecs.JobType{Name: name, Version: 1, Steps: []*codecs.StepSpec{{Name: "s1", FanOut: fan()},
		{Name: "s2", After: []string{"s1"}, Task: &codecs.TaskSpec{Queue: "single"}}, {Name: "s3", After: []string{"s2"}, FanOut: fan()}}}
}

func randomCommand(rnd *rand.Rand, now time.Time) (verb string, args *codecs.JobCommandArgs) {
	args = &codecs.JobCommandArgs{Step: []string{"s1", "s2", "s3", ""}[rnd.IntN(4)]}
	switch verb = []string{"pause", "resume", "resume", "redrive", "redrive", "extend", "policy", "window", "cancel"}[rnd.IntN(9)]; verb {
	case "extend":
		args.Deadlines = &codecs.Deadlines{CompleteBy: now.Add(time.Duration(rnd.IntN(60)) * time.Minute).UnixMilli()}
	case "policy":
		args.Policy = []*codecs.Policy{{Kind: "continue"}, {Kind: "fail_fast"}, {Kind: "tolerate", Tolerate: "50%"}}[rnd.IntN(3)]
	case "window":
		args.Window = 1 + rnd.Uint32N(9)
	case "cancel", "pause", "resume":
		args.Step = ""
	}
	return verb, args
}

func runCommands(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	var types []*codecs.JobType
	for i := range 8 {
		types = append(types, randomType(rnd, fmt.Sprintf("t%d", i)))
	}
	d, err := sim.Start(t.Context(), sim.Config{Types: types, Log: quiet})
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Stop()) }()
	w := worldOf(t, d)
	w.follow()
	var mu sync.Mutex
	dice := rand.New(rand.NewPCG(seed, 8))
	roll := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return dice.IntN(n)
	}
	handler := func(ctx context.Context, task *worker.Task) (worker.Result, error) {
		if err := sleep(ctx, time.Duration(roll(180))*time.Second, nil); err != nil {
			return worker.Result{}, err
		}
		switch x := roll(100); {
		case x < 1:
			return worker.Result{}, sim.ErrCrash
		case x < 15:
			return worker.Result{}, errors.New("not this time")
		case x < 20:
			return worker.Result{}, worker.Skip("nothing to do")
		case x < 25 && task.Kind == "sub-job":
			return worker.Result{Children: []*codecs.ManifestTask{{Id: task.Id + ".0"}, {Id: task.Id + ".1"}}}, nil
		}
		return worker.Result{}, nil
	}
	d.Work(sim.Pool{Workers: 5, Config: worker.Config{Queue: "single", Handler: handler}})
	d.Work(sim.Pool{Workers: 5, Config: worker.Config{Queue: "split", Splitter: func(ctx context.Context, task *worker.Task, emit func(*codecs.ManifestTask) error) error {
		switch x := roll(20); x {
		case 0:
			return sim.ErrCrash
		case 1:
			return errors.New("no list this time")
		default:
			return numbered(x)(ctx, task, emit)
		}
	}}})
	d.Work(sim.Pool{Workers: 60, Config: worker.Config{Queue: "render", Handler: handler}})

	sent := 0
	send := func(id, verb string, args *codecs.JobCommandArgs) {
		sent++
		cmd := &codecs.JobCommand{Id: fmt.Sprint("c", sent), Verb: verb, Args: args}
		for range 1 + rnd.IntN(2) {
			require.NoError(t, d.Send(codecs.TopicJobs, id, &codecs.Event{Type: codecs.TypeJobCommand, ID: cmd.Id, Data: cmd}))
		}
	}
	for i := range commandedJobs {
		id := fmt.Sprint("j", i)
		require.NoError(t, d.Send(codecs.TopicJobs, id, &codecs.Event{Type: codecs.TypeJobRequested, ID: id, Data: &codecs.JobRequested{Type: types[rnd.IntN(len(types))].Name}}))
		w.pass(time.Duration(rnd.IntN(60)) * time.Second)
	}
	for range commandedJobs * 8 {
		verb, args := randomCommand(rnd, time.Now())
		id := fmt.Sprint("j", rnd.IntN(commandedJobs))
		if rnd.IntN(4) == 0 {
			batch := job.BatchID(id, []string{"s1", "s3"}[rnd.IntN(2)])
			w.past[batch] = true
			w.toBatch(batch, fmt.Sprint("c", sent), verb, args)
		} else {
			send(id, verb, args)
		}
		w.pass(time.Duration(rnd.IntN(40)) * time.Second)
	}
	for i := range commandedJobs {
		id := fmt.Sprint("j", i)
		send(id, "resume", nil)
		for _, step := range []string{"s1", "s3"} {
			w.toBatch(job.BatchID(id, step), "end", "resume", &codecs.JobCommandArgs{})
		}
	}
	w.pass(24 * time.Hour)
	ends := w.judge(seed)
	t.Logf("seed %d: %d commands, %v", seed, sent, ends)
}

// toBatch sends a command past the job.
func (w *world) toBatch(batch, id, verb string, a *codecs.JobCommandArgs) {
	w.t.Helper()
	if verb == "window" {
		verb = "policy"
	}
	require.NoError(w.t, w.Send(codecs.TopicControl, batch, &codecs.Event{Type: codecs.TypeBatchCommand, ID: id + verb, Data: &codecs.BatchCommand{
		Id: id + verb, Verb: verb, Args: &codecs.CommandArgs{Deadlines: a.Deadlines, Policy: a.Policy, Window: a.Window}}}))
}

// judge checks every job at rest.
func (w *world) judge(seed uint64) map[string]int {
	t := w.t
	ends := map[string]int{}
	for i := range commandedJobs {
		id := fmt.Sprint("j", i)
		w.job(id, func(r *codecs.JobRow) {
			require.GreaterOrEqual(t, r.State, codecs.JobState_completed, "seed %d: job %s has not ended: %v", seed, id, r)
			ends[r.State.String()]++
			for k, st := range r.Steps {
				require.NotContains(t, []codecs.StepState_Code{codecs.StepState_running, codecs.StepState_splitting, codecs.StepState_pending}, st.State,
					"seed %d: step %d of %s", seed, k, id)
				if st.Proposal == "" || st.State == codecs.StepState_pending || st.State == codecs.StepState_skipped {
					continue
				}
				w.judgeBatch(seed, r, st)
			}
		})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, n := range w.terminals {
		require.Equal(t, 1, n, "seed %d: %s is told %d times", seed, id, n)
	}
	require.GreaterOrEqual(t, len(w.terminals), commandedJobs)
	for id, n := range w.ok {
		require.Equal(t, 1, n, "seed %d: %s became ok %d times", seed, id, n)
	}
	return ends
}

func (w *world) judgeBatch(seed uint64, r *codecs.JobRow, st *codecs.StepRow) {
	s := w.batch(st.Batch)
	c := s.Counts
	require.Equal(w.t, s.Total, c.Pending+c.Running+c.Ok+c.Failed+c.Skipped+c.Cancelled+c.TimedOut+c.Lost, "seed %d: %v", seed, c)
	require.GreaterOrEqual(w.t, s.State, codecs.State_completed, "seed %d: batch %s of %v", seed, st.Batch, r)
	require.NotEqual(w.t, codecs.State_inconsistent, s.State, "seed %d: batch %s: %v", seed, st.Batch, s.Causes)
	if w.past[st.Batch] {
		return // its job may know less
	}
	switch st.State {
	case codecs.StepState_completed:
		require.Equal(w.t, s.Total, c.Ok+c.Skipped, "seed %d: %s", seed, st.Batch)
	case codecs.StepState_completed_with_failures:
		require.Zero(w.t, c.Pending+c.Running, "seed %d: %s", seed, st.Batch)
		if c.Ok+c.Skipped == s.Total {
			require.Contains(w.t, s.Reason, "deadline", "seed %d: %s was paused when it was complete", seed, st.Batch)
		}
	}
	if st.State != codecs.StepState_cancelled && st.State != codecs.StepState_expired { // the job did not wait for its batch
		require.Equal(w.t, c.String(), st.Counts.String(), "seed %d: job and batch %s", seed, st.Batch)
	}
}
