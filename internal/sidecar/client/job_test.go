package client_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/client"
	"github.com/quiesce/quiesce/internal/sidecar/sidecartest"
	"github.com/quiesce/quiesce/processors/job"
)

var oneStep = &codecs.JobType{Name: "one", Version: 1, Steps: []*codecs.StepSpec{{Name: "s", Task: &codecs.TaskSpec{Queue: "q"}}}}

func TestJobsOfACustomer(t *testing.T) {
	var w *sidecartest.Workflow
	ctx, c, d := setup(t, func(cfg *sidecar.Config) {
		w = sidecartest.NewWorkflow(cfg.Batches.(*sidecartest.Deployment), job.Config{MaxPerCust: 5})
		cfg.Jobs, cfg.JobLog, cfg.CustomerKeys = w, w, true
	})
	id := client.JobID{Job: "j-1", Customer: "acme"}
	d.Hold()
	_, err := c.RequestJob(ctx, id, &codecs.JobRequested{Definition: oneStep}, none)
	require.NoError(t, err)
	got := make(chan *api.Job)
	go func() {
		j, err := c.Job(ctx, id)
		if err != nil {
			t.Error(err)
		}
		got <- j
	}()
	select {
	case <-got:
		require.Fail(t, "read before the write was durable")
	case <-time.After(20 * time.Millisecond):
	}
	d.Release()
	require.Equal(t, "running", (<-got).State)

	_, err = c.Job(ctx, client.JobID{Job: "j-1"})
	require.ErrorIs(t, err, client.ErrInvalid)
	_, err = c.Job(ctx, client.JobID{Job: "j-2", Customer: "acme"})
	require.ErrorIs(t, err, client.ErrNotFound)
	paused, err := c.JobCommand(ctx, id, "pause", nil, none)
	require.NoError(t, err)
	a, err := c.JobAnswer(ctx, id, paused.Command)
	require.NoError(t, err)
	require.True(t, a.Applied)
	for j, err := range c.Jobs(ctx, client.JobFilter{Customer: "acme", Type: "one@1", States: []string{"running"}, RequestedAfter: time.UnixMilli(1), Limit: 1}) {
		require.NoError(t, err)
		require.True(t, j.Paused)
	}
	for _, err := range c.JobTasks(ctx, id, "", "failed") {
		require.NoError(t, err)
		require.Fail(t, "it has no batch")
	}
	for _, err := range c.JobTasks(ctx, id, "s") {
		require.ErrorIs(t, err, client.ErrInvalid, "a single task")
	}
	_, err = c.JobCommand(ctx, id, "cancel", &codecs.JobCommandArgs{Reason: "enough"}, none)
	require.NoError(t, err)
	j, err := c.WaitJob(ctx, id, nil)
	require.NoError(t, err)
	require.Equal(t, "enough", j.Reason)
	require.Equal(t, client.ExitCancelled, client.ExitOfJob(j))
}

func TestStatistics(t *testing.T) {
	st := sidecartest.NewStats()
	ctx, c, _ := setup(t, func(cfg *sidecar.Config) { cfg.Stats = st })
	day := time.Date(2026, 3, 9, 23, 0, 0, 0, time.UTC)
	for i := range 3 {
		st.Count(int32(i), day.Add(time.Duration(i)*time.Hour).UnixMilli(), codecs.TypeJobRequested, &codecs.JobRequested{Type: "one"})
	}
	var days []string
	for s, err := range c.Stats(ctx, client.StatsFilter{Type: "one", From: day, To: day.Add(24 * time.Hour)}) {
		require.NoError(t, err)
		days = append(days, s.Day)
	}
	require.Equal(t, []string{"2026-03-09", "2026-03-10"}, days)
	for s, err := range c.Stats(ctx, client.StatsFilter{From: day, To: day.Add(24 * time.Hour), Total: true}) {
		require.NoError(t, err)
		require.EqualValues(t, 3, s.Requested)
	}
}
