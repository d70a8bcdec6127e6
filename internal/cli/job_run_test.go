package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/internal/binary"
	"github.com/quiesce/quiesce/internal/cli"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

const jobFile = `job: letters
version: 1
steps:
  s1: {task: {queue: prepare}}
  s2: {after: [s1], fan_out: {split: split, queue: render, window: 50, retry: {attempts: 1}}}
  s3: {after: [s2], task: {queue: report}}
`

// S1 -> S2 with 200 sub-jobs -> S3 through the command line alone: workers are commands, and what job, tasks, outcomes,
// stats and the log say is one and the same.
func TestJobThroughTheCommandLine(t *testing.T) {
	binary.Path(t)
	dir := isolate(t)
	file := filepath.Join(dir, "letters.yaml")
	require.NoError(t, os.WriteFile(file, []byte(jobFile), 0o600))
	_, bootstrap, server := dev(t, "--jobs", file, "--queue-partitions", "2", "--partitions", "2")
	job := func(args ...string) result {
		return run(t, "", append(append([]string{"job"}, args...), "--server", server)...)
	}
	for _, w := range [][]string{{"prepare", "--exec", "cat"}, {"split", "--split", "seq 0 199"},
		{"render", "--exec", `case $QUIESCE_TASK_INDEX in *7) echo no such address >&2; exit 20;; esac`}} {
		binary.Start(t, "worker", "--bootstrap-server", bootstrap, "--queue", w[0], w[1], w[2]).WaitFor("running")
	}

	r := job("start", "november", "--type", "letters", "--input", `{"month":11}`, "--label", "team=billing", "--idempotency-key", "once")
	require.Equal(t, "november\n", r.out, r.err)
	require.Equal(t, "november\n", job("start", "november", "--type", "letters", "--input", `{"month":11}`, "--label", "team=billing", "--idempotency-key", "once").out)
	r = job("start", "november", "--type", "letters")
	require.Equal(t, cli.ExitError, r.code)
	require.Contains(t, r.err, "the job exists")
	r = job("outcomes", "november")
	require.Equal(t, cli.ExitError, r.code)
	require.Contains(t, r.err, "its outcomes are not final")
	require.Equal(t, 124, job("wait", "november", "--timeout", "100ms").code, "nobody works on the report")
	binary.Start(t, "worker", "--bootstrap-server", bootstrap, "--queue", "report", "--exec", "echo '{\"sent\":true}'").WaitFor("running")
	r = job("wait", "november", "--timeout", "2m")
	require.Equal(t, 3, r.code, r.err)
	require.Contains(t, r.out, "200: 180 ok, 20 failed")

	var j api.Job
	require.NoError(t, json.Unmarshal([]byte(job("show", "november", "--json").out), &j))
	require.Equal(t, map[string]string{"team": "billing"}, j.Labels)
	require.Equal(t, &api.Counts{Total: 200, OK: 180, Failed: 20}, j.Steps[1].Counts)
	require.Contains(t, job("list", "--label", "team=billing", "--state", "ended").out, "november")
	failed := job("tasks", "november", "--step", "s2", "--outcome", "failed").out
	require.Equal(t, 20, strings.Count(failed, "no such address"))

	r = job("outcomes", "november", "--out", filepath.Join(dir, "out"))
	require.Equal(t, cli.ExitOK, r.code, r.err)
	require.Equal(t, 180, lines(t, dir, "out", "ok.jsonl"))
	require.Equal(t, 20, lines(t, dir, "out", "failed.jsonl"))
	require.Equal(t, 0, lines(t, dir, "out", "never_started.jsonl"))

	require.Eventually(t, func() bool {
		r := run(t, "", "stats", "--type", "letters", "--step", "s2", "--total", "--json", "--server", server)
		return strings.Contains(r.out, `"tasks":{"ended":200,"ok":180,"failed":20,`)
	}, waitLimit, waitTick)
	r = run(t, "", "size", "1000", "--step", "letters/s2", "--deadline", "1m", "--json", "--server", server)
	require.Equal(t, cli.ExitOK, r.code, r.err)

	require.Equal(t, "redrive applied to november\n", job("redrive", "november").out)
	require.Equal(t, 3, job("wait", "november", "--timeout", "2m").code)
	for _, role := range []string{"workflow", "stats", "notifier"} {
		r = run(t, "", "replay", "diff", "--role", role, "--jobs", file, "--bootstrap-server", bootstrap)
		require.Equal(t, cli.ExitOK, r.code, "%s: %s%s", role, r.out, r.err)
	}
}

// a job that is cancelled while it waits for workers says which of its tasks never started.
func TestCancelledJobNamesWhatNeverStarted(t *testing.T) {
	binary.Path(t)
	dir := isolate(t)
	file := filepath.Join(dir, "letters.yaml")
	require.NoError(t, os.WriteFile(file, []byte("job: wide\nversion: 1\nsteps: {s: {fan_out: {split: split, queue: render, window: 5}}}\n"), 0o600))
	_, bootstrap, server := dev(t, "--jobs", file, "--queue-partitions", "2", "--partitions", "2")
	job := func(args ...string) result {
		return run(t, "", append(append([]string{"job"}, args...), "--server", server)...)
	}
	binary.Start(t, "worker", "--bootstrap-server", bootstrap, "--queue", "split", "--split", "seq 1 20").WaitFor("running")
	require.Equal(t, cli.ExitOK, job("start", "j", "--type", "wide").code)
	var j api.Job
	require.Eventually(t, func() bool {
		j = api.Job{}
		require.NoError(t, json.Unmarshal([]byte(job("show", "j", "--json").out), &j))
		return j.Steps[0].State == "running"
	}, waitLimit, waitTick)
	require.Eventually(t, func() bool { // the batch has released its first window
		var b api.Batch
		return json.Unmarshal([]byte(run(t, "", "batch", "show", "j.s", "--json", "--server", server).out), &b) == nil && b.Released == 5
	}, waitLimit, waitTick)
	require.Equal(t, "policy applied to j\n", job("policy", "j", "--step", "s", "--window", "7").out)
	require.Equal(t, "pause applied to j\n", job("pause", "j").out)
	require.Equal(t, "resume applied to j\n", job("resume", "j").out)
	require.Equal(t, "extend applied to j\n", job("extend", "j", "--complete-by", "+1h").out)
	require.Equal(t, "cancel applied to j\n", job("cancel", "j", "--reason", "wrong month").out)
	require.Equal(t, 5, job("wait", "j", "--timeout", "1m").code)
	require.Contains(t, job("show", "j").out, "wrong month")
	r := job("outcomes", "j", "--out", filepath.Join(dir, "out"), "--json")
	require.Equal(t, cli.ExitOK, r.code, r.err)
	var n struct {
		OK, Failed   int
		NeverStarted int `json:"never_started"`
	}
	require.NoError(t, json.Unmarshal([]byte(r.out), &n))
	require.Equal(t, 20, n.Failed+n.NeverStarted)
	require.GreaterOrEqual(t, n.NeverStarted, 20-7)
}

// A request that the workflow refuses is told, not waited for.
func TestJobOfAnUnknownType(t *testing.T) {
	binary.Path(t)
	isolate(t)
	_, _, server := dev(t, "--partitions", "2")
	r := run(t, "", "job", "start", "x", "--type", "nothing", "--server", server)
	require.Equal(t, cli.ExitError, r.code)
	require.Contains(t, r.err, "job x was refused")
}

func lines(t *testing.T, name ...string) int {
	b, err := os.ReadFile(filepath.Join(name...))
	require.NoError(t, err)
	return strings.Count(string(b), "\n")
}
