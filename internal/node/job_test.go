package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/node"
	deliver "github.com/quiesce/quiesce/internal/notify"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/client"
	"github.com/quiesce/quiesce/processors/notify"
	"github.com/quiesce/quiesce/processors/stats"
	"github.com/quiesce/quiesce/processors/worker"
	"github.com/quiesce/quiesce/topology"
)

// S1 -> S2 with 1,000 sub-jobs -> S3, over HTTP, with everything in one process: what the status, the statistics, the
// tasks and the webhook say is one and the same.
func TestJobOfAThousandSubJobs(t *testing.T) {
	const n = 1000
	told := make(chan notification, 100)
	hook := httptest.NewServer(telling(told))
	t.Cleanup(hook.Close)
	var attempts seen
	_, c := start(t, node.Config{
		Jobs: node.Jobs{Types: []*topology.JobType{loadJob(t, jobFile)}, Queues: small("prepare", "split", "render", "report", topology.NotifyQueue)},
		Notify: node.Notify{Subscriptions: []notify.Subscription{{Event: "job.*", URL: hook.URL}, {Event: "step.completed", URL: hook.URL}},
			Delivery: deliver.Config{AllowPrivate: true}},
		Workers: []worker.Config{
			{Queue: "prepare", Handler: func(_ context.Context, t *worker.Task) (worker.Result, error) {
				return worker.Result{Payload: t.Payload}, nil
			}},
			{Queue: "split", Splitter: func(_ context.Context, t *worker.Task, emit func(*codecs.ManifestTask) error) error {
				for i := range n {
					if err := emit(&codecs.ManifestTask{Id: fmt.Sprintf("customer-%d", i)}); err != nil {
						return err
					}
				}
				return nil
			}},
			{Queue: "render", Handler: func(_ context.Context, t *worker.Task) (worker.Result, error) {
				tries := attempts.add(t.Id)
				switch {
				case t.Index%100 == 7:
					return worker.Result{}, worker.Fail(errors.New("no such address"))
				case t.Index%100 == 8 && tries == 1:
					return worker.Result{}, errors.New("try again")
				}
				return worker.Result{}, nil
			}},
			{Queue: "report", Handler: func(_ context.Context, t *worker.Task) (worker.Result, error) {
				return worker.Result{Payload: &codecs.Payload{Data: []byte(`{"pages":3}`), ContentType: codecs.ContentJSON}}, nil
			}},
		},
	})
	ctx := t.Context()
	id := client.JobID{Job: "november"}
	requested, err := c.RequestJob(ctx, id, &codecs.JobRequested{Type: "invoices", Customer: "acme",
		Input: &codecs.Payload{Data: []byte(`{"month":11}`), ContentType: codecs.ContentJSON}}, client.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, "november", requested.Job)
	j, err := c.Job(ctx, id) // at_least the position of the request: it is there
	require.NoError(t, err)
	require.Equal(t, requested.Request, j.Request)

	j, err = c.WaitJob(ctx, id, nil)
	require.NoError(t, err)
	require.Equal(t, "completed_with_failures", j.State, j.Reason)
	require.Len(t, j.Steps, 3)
	require.Equal(t, &api.Counts{Total: n, OK: n - n/100, Failed: n / 100}, j.Steps[1].Counts)
	require.JSONEq(t, `{"pages":3}`, string(j.Steps[2].Result.JSON))
	require.Equal(t, 2, attempts.of("customer-8"))
	require.Equal(t, 1, attempts.of("customer-7"))

	var failed []uint32
	for task, err := range c.JobTasks(ctx, id, "s2", "failed") {
		require.NoError(t, err)
		require.Equal(t, "no such address", task.Reason)
		failed = append(failed, task.Index)
	}
	require.Equal(t, []uint32{7, 107, 207, 307, 407, 507, 607, 707, 807, 907}, failed)

	got := map[string]int{}
	for range 6 { // requested, started, completed; one a step
		m := <-told
		got[m.Type]++
		require.Equal(t, "november", m.Subject)
	}
	require.Equal(t, map[string]int{"job.requested": 1, "job.started": 1, "step.completed": 3, "job.completed": 1}, got)

	step := func(step string) (s stats.Snapshot) {
		for row, err := range c.Stats(ctx, client.StatsFilter{Type: "invoices", Step: step, Total: true}) {
			require.NoError(t, err)
			s = *row
		}
		return s
	}
	require.Eventually(t, func() bool { s := step("s2"); return s.Tasks.OK+s.Tasks.Failed == n }, time.Minute, 20*time.Millisecond)
}

// notification is the body of a webhook.
type notification struct{ Type, Subject string }

func telling(out chan<- notification) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		var m notification
		b, _ := io.ReadAll(r.Body)
		if json.Unmarshal(b, &m) == nil {
			out <- m
		}
	}
}
