package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/batch"
	"github.com/quiesce/quiesce/processors/dispatcher"
	"github.com/quiesce/quiesce/processors/job"
	"github.com/quiesce/quiesce/processors/worker"
	"github.com/quiesce/quiesce/topology"
)

// Queues of the fan-out's job, and their partitions.
const (
	splitQueue   = "split"
	workQueue    = "work"
	fanoutStep   = "all"
	workQueues   = 8
	workHandlers = 64
)

func fanoutQueues() []topology.Queue {
	return []topology.Queue{{Name: splitQueue, Partitions: 1}, {Name: workQueue, Partitions: workQueues}}
}

// FanoutFigures are those of one scenario alone.
type FanoutFigures struct {
	Jobs         int     `json:"jobs"` // one after the other; seconds and completions_per_s are those of the median one
	CPUPer10k    float64 `json:"cpu_s_per_10k"`
	JobP50ms     float64 `json:"job_p50_ms"` // as p50_ms, to the end of the job: one group later
	FirstStartMs float64 `json:"first_start_ms"`
	KilledS      float64 `json:"killed_s,omitempty"` // from the kill of a worker process to the end of the job
}

// fanout runs jobs of one fan-out step each: request -> split -> manifest -> queue -> workers -> reports -> completion
// event. All roles are in this process, the sub-jobs do nothing.
func fanout(ctx context.Context, f *field, r *Result) error {
	w := &crowd{size: f.cfg.N / f.cfg.Batches}
	err := f.workflow(ctx, w, func(ctx context.Context) error {
		p, err := newProbe(f)
		if err != nil {
			return err
		}
		defer p.client.Close()
		if _, err := w.run(ctx, p, "warm-up", min(w.size, 1000)); err != nil {
			return err
		}
		m, err := quiet(func() (m measure, err error) {
			var watch stopwatch
			watch.first()
			err = w.runs(ctx, p, r)
			return watch.stop(), err
		})
		r.FanoutFigures.CPUPer10k = round(m.cpu.Seconds() / float64(w.size*f.cfg.Batches) * 10_000)
		r.ForeignCPUPercent, r.RSSMiB = m.foreign, rss()
		if err != nil || !f.cfg.Kill {
			return err
		}
		killed, err := w.killed(ctx, p)
		r.KilledS = round(killed.Seconds())
		return err
	})
	return err
}

// runs measures all jobs.
func (w *crowd) runs(ctx context.Context, p *probe, r *Result) error {
	var took, tail, jobTail, start []time.Duration
	for i := range p.f.cfg.Batches {
		o, err := w.run(ctx, p, "fanout-"+strconv.Itoa(i), w.size)
		if err != nil {
			return fmt.Errorf("job %d: %w", i, err)
		}
		took = append(took, o.completed.Sub(o.requested))
		start = append(start, o.first.Sub(o.requested))
		tail = append(tail, o.completed.Sub(o.last))
		jobTail = append(jobTail, o.ended.Sub(o.last))
	}
	median := quantile(took, 0.5) / 1000
	r.Seconds, r.CompletionsPerS = round(median), round(float64(w.size)/median)
	r.P50ms, r.P99ms, r.MaxMs = quantile(tail, 0.5), quantile(tail, 0.99), quantile(tail, 1)
	r.FanoutFigures = &FanoutFigures{Jobs: len(took), JobP50ms: quantile(jobTail, 0.5), FirstStartMs: quantile(start, 0.5)}
	return nil
}

// crowd are the sub-jobs of one job at a time.
type crowd struct {
	size int

	mu    sync.Mutex
	job   string
	want  int64
	done  atomic.Int64
	first time.Time
	last  time.Time
}

// outcome is when things happened.
type outcome struct {
	requested, first, last time.Time
	completed              time.Time // the batch's completion event was there
	ended                  time.Time // the job's
}

// run requests a job of n sub-jobs and waits for its end.
func (w *crowd) run(ctx context.Context, p *probe, id string, n int) (o outcome, err error) {
	w.mu.Lock()
	w.job, w.want = id, int64(n)
	w.done.Store(0)
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	rec, err := codecs.Encode(p.f.topic(codecs.TopicJobs), id, codecs.Source(p.f.prefix, "bench"), &codecs.Event{Type: codecs.TypeJobRequested, ID: id,
		Data: &codecs.JobRequested{Type: "fanout", Input: &codecs.Payload{Data: []byte(strconv.Itoa(n)), ContentType: codecs.ContentJSON}}})
	if err != nil {
		return o, err
	}
	o.requested = time.Now()
	p.client.Produce(ctx, wire(&rec), nil)
	if err := p.await(ctx, func(r *kgo.Record) bool {
		key := string(r.Key)
		switch {
		case key == job.BatchID(id, fanoutStep) && terminal(eventID(r)):
			o.completed = time.Now()
			if eventType(r) != codecs.TypeBatchCompleted {
				err = fmt.Errorf("%s: %s", key, eventType(r))
			}
		case key == id && eventType(r) == codecs.TypeJobCompleted:
			o.ended = time.Now()
		case key == id && eventType(r) == codecs.TypeJobFailed:
			err = fmt.Errorf("the job failed: %s", r.Value)
		}
		return err != nil || !o.completed.IsZero() && !o.ended.IsZero()
	}); err != nil {
		return o, fmt.Errorf("%d of %d sub-jobs done: %w", w.done.Load(), n, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	o.first, o.last = w.first, w.last
	return o, err
}

// handle is a sub-job: it does nothing but note the first and the last one.
func (w *crowd) handle(context.Context, *worker.Task) (worker.Result, error) {
	n := w.done.Add(1)
	if n == 1 || n == w.want {
		w.mu.Lock()
		defer w.mu.Unlock()
		if n == 1 {
			w.first = time.Now()
		}
		w.last = time.Now()
	}
	return worker.Result{}, nil
}

// split lists as many sub-jobs as the request's input says.
func split(_ context.Context, t *worker.Task, emit func(*codecs.ManifestTask) error) error {
	var step struct{ Input struct{ JSON int } }
	if err := json.Unmarshal(t.Payload.GetData(), &step); err != nil {
		return worker.Fail(err)
	}
	for i := range step.Input.JSON {
		if err := emit(&codecs.ManifestTask{Id: strconv.Itoa(i)}); err != nil {
			return err
		}
	}
	return nil
}

// workflow runs all that a job needs while fn runs.
func (f *field) workflow(ctx context.Context, w *crowd, fn func(context.Context) error) error {
	jobs, err := job.New(job.Config{Types: []*codecs.JobType{{Name: "fanout", Version: 1, Steps: []*codecs.StepSpec{
		{Name: fanoutStep, FanOut: &codecs.FanOutSpec{Split: splitQueue, Queue: workQueue}}}}}})
	if err != nil {
		return fmt.Errorf("job type: %w", err)
	}
	dir, err := os.MkdirTemp("", "quiesce-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	run := func(role string, fn func(context.Context) error) {
		group.Go(func() error {
			if err := fn(ctx); err != nil && !errors.Is(err, context.Canceled) {
				return fmt.Errorf("%s: %w", role, err)
			}
			return nil
		})
	}
	for _, m := range []processors.Machine{batch.New(batch.Config{}), jobs} {
		p, err := processors.New(processors.Config{Bootstrap: []string{f.bootstrap}, Prefix: f.prefix, Machine: m, DataDir: dir, Logger: f.cfg.Log})
		if err != nil {
			return fmt.Errorf("%s: %w", m.Role(), err)
		}
		run(m.Role(), p.Run)
	}
	run("dispatcher", func(ctx context.Context) error {
		return dispatcher.Run(ctx, dispatcher.Config{Bootstrap: f.bootstrap, Prefix: f.prefix, Log: f.cfg.Log})
	})
	for _, cfg := range []worker.Config{{Queue: splitQueue, Splitter: split, Concurrency: 1}, {Queue: workQueue, Handler: w.handle, Concurrency: workHandlers}} {
		cfg.Bootstrap, cfg.Prefix, cfg.Log = f.bootstrap, f.prefix, f.cfg.Log
		run("worker of queue "+cfg.Queue, func(ctx context.Context) error { return worker.Run(ctx, cfg) })
	}
	group.Go(func() error {
		defer cancel()
		return fn(ctx)
	})
	return group.Wait()
}
