package sim_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
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

// world is a deployment with workers of three steps, in a bubble: s1 and s3 are tasks, s2 is the fan-out.
type world struct {
	*sim.Deployment
	t *testing.T

	mu        sync.Mutex
	counts    map[eventOf]int           // events so far
	last      map[eventOf]*codecs.Event // the last one of them
	terminals map[string]int            // by id of a terminal event
	ok        map[string]int            // sub-jobs that were told ok: "<batch>/<run>/<index>"
	past      map[string]bool           // batches that were sent commands past their jobs
	starts    map[string]int            // of sub-jobs: "<batch>/<index>"
	running   int                       // sub-jobs right now
	most      int                       // the most at once
	inputs    []string                  // of s3
}

type eventOf struct{ kind, key string }

// outline is how a world's jobs are.
type outline struct {
	step     *codecs.FanOutSpec // default: an empty one
	jobBy    time.Duration      // complete_by of the job
	tasks    int                // of the fan-out
	splitter worker.Splitter
	lasts    time.Duration  // a sub-job; default 1 min
	handler  worker.Handler // of a sub-job, after that. Default ok
	workers  int            // default 20
	s3       time.Duration  // how long s3 takes; default no time
}

// inWorld runs a test in a bubble.
func inWorld(t *testing.T, o *outline, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, o)
		defer func() { require.NoError(t, w.Stop()) }()
		test(t, w)
	})
}

func worldOf(t *testing.T, d *sim.Deployment) *world {
	return &world{Deployment: d, t: t, starts: map[string]int{}, counts: map[eventOf]int{}, last: map[eventOf]*codecs.Event{}, terminals: map[string]int{}, ok: map[string]int{}, past: map[string]bool{}}
}

func newWorld(t *testing.T, o *outline) *world {
	if o.step == nil {
		o.step = &codecs.FanOutSpec{}
	}
	o.step.Split, o.step.Queue = "split", "render"
	bills := &codecs.JobType{Name: "bills", Version: 1, CompleteBy: o.jobBy.Milliseconds(), Steps: []*codecs.StepSpec{
		{Name: "s1", Task: &codecs.TaskSpec{Queue: "single"}}, {Name: "s2", After: []string{"s1"}, FanOut: o.step},
		{Name: "s3", After: []string{"s2"}, Task: &codecs.TaskSpec{Queue: "single"}}}}
	if o.splitter == nil {
		o.splitter = numbered(o.tasks)
	}
	if o.lasts == 0 {
		o.lasts = time.Minute
	}
	if o.workers == 0 {
		o.workers = 20
	}
	d, err := sim.Start(t.Context(), sim.Config{Types: []*codecs.JobType{bills}, Log: quiet})
	require.NoError(t, err)
	w := worldOf(t, d)
	d.Work(sim.Pool{Workers: 2, Config: worker.Config{Queue: "single", Handler: func(ctx context.Context, task *worker.Task) (worker.Result, error) {
		if task.Step != "s3" {
			return worker.Result{}, nil
		}
		w.mu.Lock()
		w.inputs = append(w.inputs, string(task.Payload.Data))
		w.mu.Unlock()
		return worker.Result{}, sleep(ctx, o.s3, nil)
	}}})
	d.Work(sim.Pool{Workers: 2, Config: worker.Config{Queue: "split", Splitter: o.splitter}})
	d.Work(sim.Pool{Workers: o.workers, Config: worker.Config{Queue: "render", Handler: w.subjob(o)}})
	w.follow()
	return w
}

// follow counts events until the test ends.
func (w *world) follow() {
	go func() {
		if err := w.Follow(w.t.Context(), codecs.TopicEvents, func(ev *codecs.Event) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			of, copied := eventOf{strings.Clone(ev.Type), strings.Clone(ev.Key)}, *ev
			w.counts[of]++
			w.last[of] = &copied
			if strings.HasSuffix(ev.ID, "/terminal") {
				w.terminals[strings.Clone(ev.ID)]++
			}
			if d, ok := ev.Data.(*codecs.SubjobsCompleted); ok {
				return w.done(of.key, d)
			}
			return nil
		}); err != nil {
			w.t.Error(err)
		}
	}()
}

// done counts the sub-jobs that became ok.
func (w *world) done(batch string, d *codecs.SubjobsCompleted) error {
	for _, it := range d.Items {
		if it.Outcome != codecs.OK {
			continue
		}
		if err := codecs.ForEachRange(it, func(first, last uint32) {
			for i := first; i <= last; i++ {
				w.ok[fmt.Sprintf("%s/%s/%d", batch, d.Run, i)]++
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) subjob(o *outline) worker.Handler {
	return func(ctx context.Context, task *worker.Task) (worker.Result, error) {
		w.mu.Lock()
		w.starts[fmt.Sprintf("%s/%d", task.Batch, task.Index)]++
		w.running++
		w.most = max(w.most, w.running)
		w.mu.Unlock()
		defer func() {
			w.mu.Lock()
			w.running--
			w.mu.Unlock()
		}()
		if err := sleep(ctx, o.lasts, nil); err != nil || o.handler == nil {
			return worker.Result{}, err
		}
		return o.handler(ctx, task)
	}
}

// pass lets time go by, until everybody waits.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// within lets time go by until ok holds, at most d.
func (w *world) within(d time.Duration, what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(d); ; {
		synctest.Wait()
		if ok() {
			return
		}
		require.True(w.t, time.Now().Before(end), "not within %v: %s", d, what)
		time.Sleep(100 * time.Millisecond)
	}
}

func (w *world) request(id string) {
	w.t.Helper()
	require.NoError(w.t, w.Send(codecs.TopicJobs, id, &codecs.Event{Type: codecs.TypeJobRequested, ID: id, Data: &codecs.JobRequested{Type: "bills"}}))
}

// command sends a command twice, as clients that lost the answer do.
func (w *world) command(id, verb string, args *codecs.JobCommandArgs) {
	w.t.Helper()
	for range 2 {
		require.NoError(w.t, w.Send(codecs.TopicJobs, "j", &codecs.Event{Type: codecs.TypeJobCommand, ID: id,
			Data: &codecs.JobCommand{Id: id, Verb: verb, Args: args}}))
	}
	w.pass(10 * time.Millisecond)
}

// answer is the job's to a command: "" = applied.
func (w *world) answer(id string) (reason string) {
	w.t.Helper()
	found := 0
	w.job("j", func(r *codecs.JobRow) {
		for _, a := range r.Answers {
			if a.Id == id {
				found++
				reason = a.Reason
				require.Equal(w.t, a.Applied, reason == "")
			}
		}
	})
	require.Equal(w.t, 1, found, "answers to %s", id)
	return reason
}

func (w *world) job(id string, fn func(*codecs.JobRow)) {
	w.t.Helper()
	require.True(w.t, w.Look(codecs.GroupWorkflow, id, func(r codecs.Row) { fn(r.(*job.Row).Job) }), "job %s", id)
}

// batch returns what is known of the fan-out of job j.
func (w *world) batch(id string) (s batch.Snapshot) {
	w.t.Helper()
	ok := w.Look(codecs.GroupController, id, func(r codecs.Row) { s, _ = r.(*batch.Row).Snapshot() })
	require.True(w.t, ok, "batch %s", id)
	return s
}

// count is the number of events of a type and key so far.
func (w *world) count(kind, key string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts[eventOf{kind, key}]
}

// seen waits for an event and returns it.
func (w *world) seen(d time.Duration, kind, key string) *codecs.Event {
	w.t.Helper()
	var found *codecs.Event
	w.within(d, kind+" of "+key, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		found = w.last[eventOf{kind, key}]
		return found != nil
	})
	return found
}

// started is how many sub-jobs have been started, and how often the most.
func (w *world) started() (tasks, most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.starts {
		most = max(most, n)
	}
	return len(w.starts), most
}

// busy is how many sub-jobs run, and forgets how many there were.
func (w *world) busy() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.most = w.running
	return w.running
}

func (w *world) peak() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most
}

func (w *world) startsOf(task string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.starts[task]
}

// startedAgain is the number of starts that were not the first of a sub-job.
func (w *world) startedAgain() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	again := 0
	for _, n := range w.starts {
		again += n - 1
	}
	return again
}

// s3Inputs is what s3 was given, so far.
func (w *world) s3Inputs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.inputs)
}

// manifest is the keys of the chunks that are in the manifest.
func (w *world) manifest() (keys []string) {
	w.t.Helper()
	recs, err := w.Log.Read(w.t.Context(), codecs.Topic(sim.Prefix, codecs.TopicManifest), 0)
	require.NoError(w.t, err)
	last := map[string]bool{}
	for _, rec := range recs {
		last[string(rec.Key)] = rec.Value != nil
	}
	for key, there := range last {
		if there {
			keys = append(keys, key)
		}
	}
	return keys
}
