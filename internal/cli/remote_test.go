package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/client"
)

// fakeSidecar answers with what a test puts in and keeps the requests.
type fakeSidecar struct {
	*httptest.Server
	answers map[string]any // "METHOD path" -> document, or *api.Problem
	seen    []*http.Request
	bodies  []string
}

func newFakeSidecar(t *testing.T, answers map[string]any) *fakeSidecar {
	f := &fakeSidecar{answers: answers}
	if f.answers == nil {
		f.answers = map[string]any{}
	}
	f.answers["GET /readyz"] = api.Health{Status: "ready"}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body strings.Builder
		if r.Body != nil {
			_, _ = fmt.Fprint(&body, readAll(r))
		}
		f.seen, f.bodies = append(f.seen, r), append(f.bodies, body.String())
		v, ok := f.answers[r.Method+" "+r.URL.Path]
		if !ok {
			v = &api.Problem{Type: api.ProblemNotFound, Title: "Not found", Status: 404, Detail: r.URL.Path}
		}
		if p, ok := v.(*api.Problem); ok {
			w.WriteHeader(p.Status)
		}
		_ = json.NewEncoder(w).Encode(v)
	}))
	t.Cleanup(f.Close)
	return f
}

func readAll(r *http.Request) string {
	var b strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := r.Body.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return b.String()
		}
	}
}

func ended(state string) api.Batch {
	return api.Batch{Batch: "b-1", Run: "r", State: state, Terminal: true, Mode: "ledger", Counts: api.Counts{Total: 3, OK: 2, Failed: 1}}
}

func TestWaitExitCodes(t *testing.T) {
	isolate(t)
	for state, code := range map[string]int{"completed": 0, "completed_with_failures": 3, "failed": 4, "cancelled": 5, "expired": 6, "inconsistent": 7} {
		f := newFakeSidecar(t, map[string]any{"GET /v1/batches/b-1": ended(state)})
		r := run(t, "", "wait", "b-1", "--server", f.URL)
		require.Equal(t, code, r.code, state)
		require.Contains(t, r.out, "b-1 "+state+": 3 tasks: 2 ok, 1 failed")
		require.Empty(t, r.err)

		r = run(t, "", "wait", "b-1", "--json", "--server", f.URL)
		require.Equal(t, code, r.code, state)
		var b api.Batch
		require.NoError(t, json.Unmarshal([]byte(r.out), &b))
		require.Equal(t, state, b.State)
	}
}

func TestWaitWithUnknownOutcomes(t *testing.T) {
	isolate(t)
	b := ended("completed")
	b.Mode, b.Counts = "markers", api.Counts{Total: 3, Unknown: 3}
	f := newFakeSidecar(t, map[string]any{"GET /v1/batches/b-1": b})
	r := run(t, "", "wait", "b-1", "--server", f.URL)
	require.Equal(t, client.ExitWithFailures, r.code)
	require.Contains(t, r.err, "--attempted")
	require.Equal(t, ExitOK, run(t, "", "wait", "b-1", "--attempted", "--server", f.URL).code)
}

func TestWaitTimesOut(t *testing.T) {
	isolate(t)
	open := api.Batch{Batch: "b-1", State: "open"}
	f := newFakeSidecar(t, map[string]any{"GET /v1/batches/b-1": open})
	r := run(t, "", "wait", "b-1", "--timeout", "50ms", "--server", f.URL)
	require.Equal(t, client.ExitTimeout, r.code)
	require.Contains(t, r.err, "has not ended within 50ms")
}

func TestWaitWithoutASidecar(t *testing.T) {
	isolate(t)
	f := newFakeSidecar(t, nil)
	f.Close()
	r := run(t, "", "wait", "b-1", "--server", f.URL)
	require.Equal(t, ExitError, r.code)
	require.Contains(t, r.err, "no sidecar at "+f.URL)
}

func TestBadInputOfRemoteCommands(t *testing.T) {
	isolate(t)
	for _, line := range []string{
		"wait", "wait a b", "wait b:1", "wait b-1 --server ftp://x", "wait b-1 --timeout -1s", "wait b-1 --timeout soon",
		"batch", "batch nonsense", "batch list x", "batch list --label x", "batch list --limit -1", "batch list --server ftp://x",
		"batch show", "batch show b:1", "batch explain", "batch missing", "batch tasks", "batch cancel", "batch pause b:1",
		"batch extend b-1", "batch extend b-1 --complete-by soon", "batch policy b-1", "batch policy b-1 --kind tolerate",
		"batch policy b-1 --kind continue --tolerate 3", "batch redrive b-1 --outcome ok", "batch cancel b-1 --if-version x",
		"topics", "topics plan x", "topics plan --prefix /", "topics plan --sasl-mechanism NTLM", "topics diff --topology none.yaml",
		"topics apply --partitions 100000",
	} {
		r := run(t, "", strings.Fields(line)...)
		require.Equal(t, ExitUsage, r.code, "quiesce %s: %s", line, r.err)
		require.NotEmpty(t, r.err, line)
		require.Empty(t, r.out, line)
	}
}

func TestListWalksAllPages(t *testing.T) {
	isolate(t)
	f := newFakeSidecar(t, nil)
	f.answers["GET /v1/batches"] = api.BatchList{Batches: []api.Batch{ended("completed")}}
	r := run(t, "", "batch", "list", "--state", "completed", "--label", "a=b", "--topology", "t@1", "--server", f.URL)
	require.Equal(t, ExitOK, r.code, r.err)
	require.Contains(t, r.out, "b-1")
	require.Equal(t, "label=a%3Ab&state=completed&topology=t%401", f.seen[1].URL.RawQuery)

	pages := 0
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			_ = json.NewEncoder(w).Encode(api.Health{Status: "ready"})
			return
		}
		pages++
		list := api.BatchList{Batches: []api.Batch{{Batch: fmt.Sprintf("b-%d", pages)}}}
		if pages < 3 {
			list.Next = fmt.Sprint(pages)
		}
		_ = json.NewEncoder(w).Encode(list)
	})
	r = run(t, "", "batch", "list", "--json", "--server", f.URL)
	require.Equal(t, ExitOK, r.code, r.err)
	require.Len(t, strings.Split(strings.TrimSpace(r.out), "\n"), 3)
	pages = 0
	require.Len(t, strings.Split(strings.TrimSpace(run(t, "", "batch", "list", "--json", "--limit", "2", "--server", f.URL).out), "\n"), 2)
}

func TestVerbSendsACommandAndPrintsTheRowsAnswer(t *testing.T) {
	isolate(t)
	at := api.Position{Partition: 3, Offset: 17}
	f := newFakeSidecar(t, map[string]any{
		"POST /v1/batches/b-1:extend":    api.Accepted{Command: "k", Position: at},
		"GET /v1/batches/b-1/commands/k": api.Command{Command: "k", Verb: "extend", Applied: true},
	})
	r := run(t, "", "batch", "extend", "b-1", "--complete-by", "2030-01-02T03:04:05Z", "--no-progress-for", "1m", "--on-deadline", "close",
		"--reason", "late data", "--idempotency-key", "k", "--if-version", "9", "--server", f.URL, "--token", "secret")
	require.Equal(t, ExitOK, r.code, r.err)
	require.Equal(t, "extend applied to b-1\n", r.out)
	require.JSONEq(t, `{"deadlines":{"complete_by":"1893553445000","no_progress_for":"60000"},"on_deadline":"close","reason":"late data"}`, f.bodies[0])
	require.Equal(t, "k", f.seen[0].Header.Get("Idempotency-Key"))
	require.Equal(t, `"9"`, f.seen[0].Header.Get("If-Match"))
	require.Equal(t, "Bearer secret", f.seen[0].Header.Get("Authorization"))
	require.Equal(t, "3:17", f.seen[1].URL.Query().Get("at_least"))

	f.answers["GET /v1/batches/b-1/commands/k"] = api.Command{Command: "k", Verb: "extend", Reason: "the batch is completed"}
	r = run(t, "", "batch", "extend", "b-1", "--no-progress-for", "1m", "--server", f.URL)
	require.Equal(t, ExitError, r.code)
	require.Contains(t, r.err, "had no effect: the batch is completed")
}

func TestRefusalsOfTheSidecarAreReadable(t *testing.T) {
	isolate(t)
	f := newFakeSidecar(t, map[string]any{"GET /v1/batches/b-1": &api.Problem{Type: api.ProblemAuth, Title: "Unauthorized", Status: 401, Detail: "no token"}})
	r := run(t, "", "batch", "show", "b-1", "--server", f.URL)
	require.Equal(t, ExitError, r.code)
	require.Equal(t, "quiesce: batch b-1: Unauthorized: no token\n", r.err)
	require.Equal(t, ExitError, run(t, "", "batch", "show", "b-2", "--server", f.URL).code)
}

func TestShowExplainMissingTasks(t *testing.T) {
	isolate(t)
	idle := api.Int64(7000)
	f := newFakeSidecar(t, map[string]any{
		"GET /v1/batches/b-1": api.Batch{Batch: "b-1", Run: "r", State: "sealed", Paused: true, Round: 1, Mode: "markers", Topology: &api.Topology{Name: "t", Version: 2},
			Counts: api.Counts{Total: 10, Pending: 9, OK: 1}, Stages: []api.Stage{{Stage: "s", Topic: "x", Units: 4, Reported: 1, Consumed: 3}}, StartedAt: 1},
		"GET /v1/batches/b-1/explain": api.Explain{Lines: []string{"stage s, topic x, partition 2"}, Stages: []api.ExplainStage{{Stage: "s", Topic: "x", Group: "g", Lag: 9,
			Partitions: []api.ExplainPartition{{Partition: 2, Idle: &idle}}}}},
		"GET /v1/batches/b-1/missing": api.Missing{Ranges: []api.Range{{First: 3, Last: 3}, {First: 7, Last: 9, Running: true}}, Units: []api.Unit{{Stage: "s", Topic: "x", Partition: 2}}},
		"GET /v1/batches/b-1/tasks":   api.TaskList{Tasks: []api.Task{{Index: 4, Outcome: "failed", Reason: "no such account", Reporter: "s@h"}}},
	})
	show := run(t, "", "batch", "show", "b-1", "--server", f.URL)
	require.Contains(t, show.out, "sealed paused")
	require.Contains(t, show.out, "10 total: 1 ok, 9 pending")
	require.Contains(t, show.out, "s/x  1 of 4 units ended, 3 records, 0 failed")
	explain := run(t, "", "batch", "explain", "b-1", "--server", f.URL)
	require.True(t, strings.HasPrefix(explain.out, "stage s, topic x, partition 2\n"), explain.out)
	require.Equal(t, "3\n7-9  started\nunit s/x/2\n", run(t, "", "batch", "missing", "b-1", "--server", f.URL).out)
	require.Equal(t, "4\tfailed\ts@h\tno such account\n", run(t, "", "batch", "tasks", "b-1", "--outcome", "failed", "--server", f.URL).out)
	for _, what := range []string{"show", "explain", "missing", "tasks"} {
		r := run(t, "", "batch", what, "b-1", "--json", "--server", f.URL)
		require.Equal(t, ExitOK, r.code, r.err)
		require.True(t, json.Valid([]byte(strings.TrimSpace(r.out))), r.out)
	}
}
