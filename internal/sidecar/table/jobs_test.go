package table_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/client"
	"github.com/quiesce/quiesce/internal/sidecar/table"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/job"
	"github.com/quiesce/quiesce/processors/stats"
)

// invoices is a job of one task, a fan-out and one more task.
func invoices() *codecs.JobRequested {
	task := func(q string) *codecs.TaskSpec { return &codecs.TaskSpec{Queue: q} }
	return &codecs.JobRequested{Type: "invoices", Version: 1, Definition: &codecs.JobType{Name: "invoices", Version: 1, Steps: []*codecs.StepSpec{
		{Name: "s1", Task: task("prepare")},
		{Name: "s2", After: []string{"s1"}, FanOut: &codecs.FanOutSpec{Split: "split", Queue: "render"}},
		{Name: "s3", After: []string{"s2"}, Task: task("report")}}}}
}

// work creates the topics of the queues and runs the groups of jobs and statistics.
func (d *deployment) work(cfg job.Config) {
	d.t.Helper()
	admin := kadm.NewClient(brokertest.Client(d.t, d.bootstrap))
	for _, q := range []string{"prepare", "split", "render", "report"} {
		_, err := admin.CreateTopic(d.ctx, 2, -1, nil, codecs.Topic(d.prefix, codecs.WorkTopic(q)))
		require.NoError(d.t, err)
	}
	m, err := job.New(cfg)
	require.NoError(d.t, err)
	d.process(m)
	d.process(stats.New())
}

func (d *deployment) process(m processors.Machine) {
	d.t.Helper()
	p, err := processors.New(processors.Config{Bootstrap: []string{d.bootstrap}, Prefix: d.prefix, Machine: m, DataDir: d.t.TempDir(),
		Logger: slog.New(slog.DiscardHandler)})
	require.NoError(d.t, err)
	d.runs(p.Run)
}

func (d *deployment) runs(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	d.t.Cleanup(func() { cancel(); require.NoError(d.t, <-done) })
}

// until waits until a job is as wanted.
func (d *deployment) until(id client.JobID, want func(j *api.Job) bool) (j *api.Job) {
	d.t.Helper()
	require.Eventually(d.t, func() (ok bool) {
		var err error
		j, err = d.Job(d.ctx, id)
		require.NoError(d.t, err)
		return want(j)
	}, waitLong, tick)
	return j
}

// A job whose worker is in another language: it knows the wire from its documentation only, and writes JSON.
func TestJobWithAForeignWorker(t *testing.T) {
	d := deploy(t)
	d.work(job.Config{})
	worker := &foreign{t: t, topic: d.prefix + ".jobs", kafka: brokertest.Client(t, d.bootstrap)}
	reporter := &foreign{t: t, topic: d.prefix + ".control", kafka: worker.kafka}
	id := client.JobID{Job: "night-1"}
	req, err := d.RequestJob(d.ctx, id, invoices(), client.WriteOptions{IdempotencyKey: "k1"})
	require.NoError(t, err)
	j, err := d.Job(d.ctx, id)
	require.NoError(t, err, "it reads what it wrote")
	require.Equal(t, req.Request, j.Request)
	require.Equal(t, "running", j.State)
	_, err = d.RequestJob(d.ctx, id, invoices(), none)
	require.ErrorIs(t, err, client.ErrWrongState)
	again, err := d.RequestJob(d.ctx, id, invoices(), client.WriteOptions{IdempotencyKey: "k1"})
	require.NoError(t, err)
	require.Equal(t, req.Request, again.Request)

	worker.send("night-1", "step.task-completed", map[string]any{"step": "s1", "round": 1, "outcome": "ok"})
	worker.send("night-1", "split.proposed", map[string]any{"step": "s2", "round": 1, "attempt": 1, "proposal": "p1", "total": 6,
		"chunks": []map[string]any{{"first": 0, "partition": 0, "offset": "0"}}})
	j = d.until(id, func(j *api.Job) bool { return j.Steps[1].State == "running" })
	require.Equal(t, "night-1.s2", j.Steps[1].Batch)
	batch, run := j.Steps[1].Batch, j.Steps[1].Run
	reporter.send(batch, "batch.report", map[string]any{"run": run, "items": []map[string]any{{"first": 0, "last": 3, "outcome": "ok"}}})
	d.until(id, func(j *api.Job) bool { return j.Steps[1].Counts != nil && j.Steps[1].Counts.OK == 4 })

	_, err = d.JobCommand(d.ctx, id, "pause", nil, client.WriteOptions{IdempotencyKey: "p1"})
	require.NoError(t, err)
	a, err := d.JobAnswer(d.ctx, id, "p1")
	require.NoError(t, err)
	require.True(t, a.Applied, a.Reason)
	_, err = d.JobCommand(d.ctx, id, "resume", nil, none)
	require.NoError(t, err)

	reporter.send(batch, "batch.report", map[string]any{"run": run, "items": []map[string]any{{"first": 4, "last": 5, "outcome": "failed", "reason": "no such customer"}}})
	j = d.until(id, func(j *api.Job) bool { return j.Steps[2].State == "running" })
	require.Equal(t, "completed_with_failures", j.Steps[1].State)
	require.Equal(t, api.Counts{Total: 6, OK: 4, Failed: 2}, *j.Steps[1].Counts)
	worker.send("night-1", "step.task-completed", map[string]any{"step": "s3", "round": 1, "outcome": "ok"})
	j, err = d.WaitJob(d.ctx, id, nil)
	require.NoError(t, err)
	require.Equal(t, "completed_with_failures", j.State)
	require.Equal(t, client.ExitWithFailures, client.ExitOfJob(j))
	require.Eventually(t, func() bool {
		reasons := 0
		for x, err := range d.JobTasks(d.ctx, id, "s2", "failed") {
			require.NoError(t, err)
			require.Equal(t, batch, x.Batch)
			if x.Reason == "no such customer" {
				reasons++
			}
		}
		return reasons == 2
	}, waitLong, tick)
	d.counted()
}

// counted waits for the statistics of the job above.
func (d *deployment) counted() {
	d.t.Helper()
	require.Eventually(d.t, func() bool {
		var jobs, ok, failed uint64
		for s, err := range d.Stats(d.ctx, client.StatsFilter{Type: "invoices", Total: true}) {
			require.NoError(d.t, err)
			if s.Step == "" {
				jobs += s.Ended.CompletedWithFailures
			}
			if s.Step == "s2" {
				ok, failed = ok+s.Tasks.OK, failed+s.Tasks.Failed
			}
		}
		return jobs == 1 && ok == 4 && failed == 2
	}, waitLong, tick)
}

func TestWalkMeetsEveryJobOnce(t *testing.T) {
	d := deploy(t)
	d.work(job.Config{})
	var want []string
	for i := range 40 {
		id := client.JobID{Job: fmt.Sprintf("j-%03d", i)}
		_, err := d.RequestJob(d.ctx, id, invoices(), none)
		require.NoError(t, err)
		want = append(want, id.Job)
	}
	for _, id := range want {
		_, err := d.Job(d.ctx, client.JobID{Job: id}) // the view has them all
		require.NoError(t, err)
	}
	var got []string
	for j, err := range d.Jobs(d.ctx, client.JobFilter{States: []string{"active"}, Type: "invoices", Limit: 7}) {
		require.NoError(t, err)
		got = append(got, j.Job)
		_, err = d.JobCommand(d.ctx, client.JobID{Job: j.Job}, "pause", nil, none) // rows change during the walk
		require.NoError(t, err)
	}
	require.Equal(t, want, got)
}

// The row of a customer stands right before the rows of its jobs: a walk passes over it, and over nothing else.
func TestJobsOfCustomersInAView(t *testing.T) {
	d := deploy(t)
	d.work(job.Config{MaxPerCust: 1})
	v, err := table.NewJobs(table.Config{Bootstrap: []string{d.bootstrap}, Prefix: d.prefix, DataDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	d.runs(v.Run)
	log, err := sidecar.OpenJobLog(d.prefix, "test", kgo.SeedBrokers(d.bootstrap))
	require.NoError(t, err)
	t.Cleanup(log.Close)
	require.Eventually(t, func() bool { return v.Readiness().OK }, waitLong, tick)
	_, err = v.Get("none")
	require.ErrorIs(t, err, sidecar.ErrUnknown)
	var want []string
	for _, c := range []string{"acme", "acme-2", "zeta"} {
		for i := range 3 {
			key := fmt.Sprintf("%s\x00j-%d", c, i)
			want = append(want, key)
			req := invoices()
			req.Customer = c
			pos, err := log.Append(d.ctx, key, &codecs.Event{Type: codecs.TypeJobRequested, ID: key, Data: req})
			require.NoError(t, err)
			changed, stop := v.Watch(key)
			for {
				ok, err := v.Reached(key, pos)
				require.NoError(t, err)
				if ok {
					break
				}
				select {
				case <-changed:
				case <-time.After(waitLong):
					require.Fail(t, "no word of a change")
				}
			}
			stop()
			j, err := v.Get(key)
			require.NoError(t, err)
			require.Equal(t, c, j.Customer)
		}
		_, err := v.Get(c)
		require.ErrorIs(t, err, sidecar.ErrUnknown, "a customer's row is no job")
	}
	for _, n := range []int{1, 2, 5, 100} {
		var got []string
		for after := ""; ; {
			page, next, err := v.Scan(after, n)
			require.NoError(t, err)
			for _, j := range page {
				got = append(got, j.Customer+"\x00"+j.Job)
			}
			if after = next; after == "" {
				break
			}
		}
		require.Equal(t, want, got, "pages of %d", n)
	}
}
