//go:build unix

package worker_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/worker"
)

func TestExec(t *testing.T) {
	for name, c := range map[string]struct {
		script, reason string
		outcome        codecs.Outcome_Code
		result         string
		attempts       uint32
	}{
		"ok":                   {script: "cat; echo -n \" of $QUIESCE_TASK_BATCH/$QUIESCE_TASK_INDEX attempt $QUIESCE_TASK_ATTEMPT\"", outcome: codecs.OK, result: "input of b/0 attempt 1", attempts: 1},
		"nothing":              {script: "cat > /dev/null", outcome: codecs.OK, attempts: 1},
		"skip":                 {script: "echo not today >&2; exit 10", outcome: codecs.Skipped, reason: "not today", attempts: 1},
		"fail":                 {script: "echo one >&2; echo two >&2; exit 20", outcome: codecs.Failed, reason: "two", attempts: 1},
		"retried":              {script: "echo no >&2; exit 1", outcome: codecs.Failed, reason: "exit status 1: no", attempts: 3},
		"signal":               {script: "kill -9 $$", outcome: codecs.Failed, reason: "signal: killed", attempts: 3},
		"ok at last":           {script: "test $QUIESCE_TASK_ATTEMPT = 3", outcome: codecs.OK, attempts: 3},
		"too large":            {script: "head -c 70000 /dev/zero", outcome: codecs.Failed, reason: "more than 65536 bytes", attempts: 1},
		"stdin is not read":    {script: "true", outcome: codecs.OK, attempts: 1},
		"largest that is fine": {script: "head -c 65536 /dev/zero | tr '\\0' x", outcome: codecs.OK, result: strings.Repeat("x", 65536), attempts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			task := subjobs(1, &codecs.Retry{Attempts: 3, First: 1})[0]
			task.Payload = &codecs.Payload{Data: []byte("input")}
			ends, _ := memory(t, worker.Config{Handler: worker.Exec("/bin/sh", "-c", c.script)}, 1, task)
			require.Equal(t, c.outcome, ends[0].Outcome, ends[0].Reason)
			require.Contains(t, ends[0].Reason, c.reason)
			require.Equal(t, c.result, string(ends[0].Result.GetData()))
			require.Equal(t, c.attempts, ends[0].Task.Attempt)
		})
	}
	_, err := worker.Exec("/no/such/command")(context.Background(), &worker.Task{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A time-out kills the command and what it has started.
func TestExecKillsTheProcessGroup(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	task := subjobs(1, nil)[0]
	task.AttemptTimeout = 300
	script := fmt.Sprintf("sleep 1000 & echo $! $$ > %s.part; mv %s.part %s; wait", pids, pids, pids)
	start := time.Now()
	ends, _ := memory(t, worker.Config{Handler: worker.Exec("/bin/sh", "-c", script)}, 1, task)
	require.Equal(t, codecs.TimedOut, ends[0].Outcome)
	require.Less(t, time.Since(start), 20*time.Second)
	text, err := os.ReadFile(pids)
	require.NoError(t, err)
	for _, field := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(field)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return gone(pid) }, patience, 5*time.Millisecond, "process %d lives", pid)
	}
}

// gone says that a process has ended; one that nobody has waited for yet has.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestExecSplitter(t *testing.T) {
	split := func(script string, retry *codecs.Retry) (*worker.Recorder, *worker.End) {
		var end *worker.End
		task := &codecs.Task{Kind: "split", Batch: "j.s", Job: "j", JobKey: "j", Step: "s", Round: 1, Attempt: 1, Retry: retry}
		rec := runSplit(t, worker.ExecSplitter("/bin/sh", "-c", script), task, &end)
		return rec, end
	}
	rec, end := split(`for i in 1 2 3; do echo "{\"id\":\"c$i\",\"n\":$i}"; done`, nil)
	require.Nil(t, end)
	p := rec.Proposals()[0]
	require.Equal(t, uint32(3), p.Total)
	require.Equal(t, "c2", rec.At(p.Chunks[0]).Tasks[1].Id)
	require.JSONEq(t, `{"id":"c2","n":2}`, string(rec.At(p.Chunks[0]).Tasks[1].Payload.Data))

	rec, end = split(`echo '{}'; echo 'no JSON'; yes '{}'`, &codecs.Retry{Attempts: 5, First: 1})
	require.Empty(t, rec.Proposals())
	require.Equal(t, codecs.Failed, end.Outcome)
	require.Equal(t, uint32(1), end.Task.Attempt)
	require.Contains(t, end.Reason, "line 2 is not JSON")

	rec, end = split(`echo '{}'; exit 3`, &codecs.Retry{Attempts: 2, First: 1})
	require.Empty(t, rec.Proposals(), "a list counts only with exit code 0")
	require.Equal(t, uint32(2), end.Task.Attempt)
}
