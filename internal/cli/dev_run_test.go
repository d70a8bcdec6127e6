package cli_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/internal/binary"
	"github.com/quiesce/quiesce/internal/cli"
	"github.com/quiesce/quiesce/internal/conformance"
	"github.com/quiesce/quiesce/internal/demo"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

var addresses = regexp.MustCompile(`broker at (\S+)[\s\S]*dashboard and HTTP at (\S+)`)

// dev starts quiesce dev on free ports and returns where its broker and its sidecar are.
func dev(t *testing.T, args ...string) (p *binary.Process, bootstrap, server string) {
	t.Helper()
	p = binary.Start(t, append([]string{"dev", "--broker-listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"}, args...)...)
	p.WaitFor("dashboard and HTTP at")
	m := addresses.FindStringSubmatch(p.Stdout())
	require.Len(t, m, 3, p.Stdout())
	return p, m[1], m[2]
}

// httpClient speaks to a sidecar as a service in any language does.
type httpClient struct {
	t      *testing.T
	server string
}

func newHTTP(t *testing.T, server string) httpClient {
	c := httpClient{t, server}
	require.Equal(t, cli.ExitOK, run(t, "", "batch", "list", "--server", server).code, "its view is loaded")
	return c
}

func (c httpClient) post(path, body string) {
	r, err := http.Post(c.server+"/v1/batches"+path, "application/json", strings.NewReader(body))
	require.NoError(c.t, err)
	defer r.Body.Close()
	require.Less(c.t, r.StatusCode, 300, path)
}

func TestDevKeepsItsBatchesOverARestart(t *testing.T) {
	binary.Path(t)
	dir := isolate(t)
	data := filepath.Join(dir, "data")
	p, _, server := dev(t, "--data-dir", data)
	post := newHTTP(t, server).post
	post("", `{"id":"b-1","run":"r","labels":{"a":"b"}}`)
	post("/b-1/reports", `{"run":"r","items":[{"first":0,"last":4,"outcome":"ok"},{"first":7,"outcome":"failed","reason":"no such account"}]}`)
	post("/b-1:seal", `{"run":"r","total":10}`)
	require.Eventually(t, func() bool { return run(t, "", "batch", "missing", "b-1", "--server", server).out == "5-6\n8-9\n" },
		10*time.Second, 10*time.Millisecond)
	require.Equal(t, 124, run(t, "", "wait", "b-1", "--timeout", "100ms", "--server", server).code)

	p.Signal(syscall.SIGTERM)
	require.Equal(t, 0, p.Wait(), p.Stderr())
	_, bootstrap, server := dev(t, "--data-dir", data)

	r := run(t, "", "batch", "show", "b-1", "--json", "--server", server)
	require.Equal(t, cli.ExitOK, r.code, r.err)
	var b api.Batch
	require.NoError(t, json.Unmarshal([]byte(r.out), &b))
	require.Equal(t, "sealed", b.State)
	require.Equal(t, api.Counts{Total: 10, OK: 5, Failed: 1, Pending: 4}, b.Counts)
	require.Equal(t, "7\tfailed\tno such account\n", run(t, "", "batch", "tasks", "b-1", "--outcome", "failed", "--server", server).out)

	require.Equal(t, "pause applied to b-1\n", run(t, "", "batch", "pause", "b-1", "--server", server).out)
	r = run(t, "", "batch", "cancel", "b-1", "--reason", "wrong input", "--server", server)
	require.Equal(t, "cancel applied to b-1\n", r.out, r.err)
	require.Equal(t, 5, run(t, "", "wait", "b-1", "--server", server).code)
	require.Contains(t, run(t, "", "batch", "explain", "b-1", "--server", server).out, "the batch has ended: cancelled (wrong input)")
	r = run(t, "", "batch", "pause", "b-1", "--server", server)
	require.Equal(t, cli.ExitError, r.code)
	require.Contains(t, r.err, "the batch is cancelled")
	r = run(t, "", "batch", "list", "--label", "a=b", "--state", "ended", "--json", "--server", server)
	require.Contains(t, r.out, `"batch":"b-1"`)

	require.Equal(t, "gc applied to b-1\n", run(t, "", "batch", "gc", "b-1", "--server", server).out)
	require.NotContains(t, run(t, "", "batch", "list", "--state", "cancelled", "--server", server).out, "b-1")

	logged := filepath.Join(dir, "control.jsonl")
	require.Equal(t, cli.ExitOK, run(t, "", "replay", "record", "--out", logged, "--bootstrap-server", bootstrap).code)
	rows := run(t, "", "replay", "fold", logged)
	require.Contains(t, rows.err, "records", rows.out)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rows.txt"), []byte(rows.out), 0o600))
	require.Equal(t, cli.ExitOK, run(t, "", "replay", "fold", logged, "--expect", "rows.txt").code)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rows.txt"), []byte("b-0 nothing\n"), 0o600))
	require.Equal(t, cli.ExitError, run(t, "", "replay", "fold", logged, "--expect", "rows.txt").code)
	r = run(t, "", "replay", "diff", "--bootstrap-server", bootstrap)
	require.Equal(t, cli.ExitOK, r.code, r.err+r.out)
}

func TestConformanceCommandOnDev(t *testing.T) {
	binary.Path(t)
	isolate(t)
	_, bootstrap, _ := dev(t, "--queues", "conformance=2")
	r := run(t, "", "conformance", "--bootstrap-server", bootstrap, "--json", "C18", "C33", "C12", "C37j")
	require.Equal(t, cli.ExitOK, r.code, r.err+r.out)
	for _, line := range strings.Split(strings.TrimSpace(r.out), "\n") {
		var res conformance.Result
		require.NoError(t, json.Unmarshal([]byte(line), &res))
		require.True(t, res.Passed)
	}
	require.Contains(t, run(t, "", "conformance", "--list").out, "C33")
	r = run(t, "", "conformance", "--bootstrap-server", bootstrap, "--queue", "nowhere", "C12", "C18")
	require.Equal(t, cli.ExitOK, r.code, r.err+r.out)
	require.Contains(t, r.out, "NOT RUN C12")
	require.Contains(t, r.out, "no queue nowhere here")
	require.Contains(t, r.out, "ok      C18")
}

// what HTTP says of the demo's batch while everything still runs is what the demo printed.
func TestDemoAgreesWithItsSidecar(t *testing.T) {
	dir := isolate(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "good.go"), []byte("package a\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bad.go"), []byte("packag\n"), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server := ""
	_, err := demo.Run(ctx, demo.Config{Input: dir, Keep: true,
		Watch: func(p demo.Progress) { server = p.Sidecar },
		Done: func(res *demo.Result) {
			defer cancel()
			r := run(t, "", "batch", "show", res.Batch, "--json", "--server", server)
			require.Equal(t, cli.ExitOK, r.code, r.err)
			var b api.Batch
			require.NoError(t, json.Unmarshal([]byte(r.out), &b))
			require.Equal(t, res.State, b.State)
			require.Equal(t, api.Counts{Total: 2, Failed: 1, Unknown: 1}, b.Counts)
			require.Equal(t, len(res.Index.Failures), int(b.Counts.Failed))
			tasks := run(t, "", "batch", "tasks", res.Batch, "--outcome", "failed", "--server", server)
			require.Contains(t, tasks.out, res.Index.Failures[0].Reason)
		}})
	require.NoError(t, err)
	require.NotEmpty(t, server)
}

func TestDemoExitCodes(t *testing.T) {
	dir := isolate(t)
	r := run(t, "", "demo", "--input", ".")
	require.Equal(t, 0, r.code, r.err)
	require.Contains(t, r.out, "a batch without tasks completes at once")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "empty.go"), nil, 0o600))
	r = run(t, "", "demo", "--input", ".", "--mode", "ledger", "--json")
	require.Equal(t, 3, r.code, r.err)
	var res demo.Result
	require.NoError(t, json.Unmarshal([]byte(r.out), &res))
	require.Equal(t, []demo.Failure{{Path: "empty.go", Stage: "parse", Reason: "empty.go:1:1: expected 'package', found 'EOF'"}}, res.Index.Failures)
	require.Contains(t, run(t, "", "demo", "topology").out, "topology: go-index")
	require.Equal(t, "{\"path\":\"empty.go\"}\n", run(t, "", "demo", "tasks", "--input", ".").out)
}

func TestBadInputIsAUsageError(t *testing.T) {
	dir := isolate(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bad.yaml"), []byte("topology: x\n"), 0o600))
	for _, line := range []string{
		"demo x", "demo --input none", "demo --mode hope", "demo --batch b:1", "demo stage", "demo stage sing", "demo stage read --input none",
		"demo tasks --input none",
		"dev x", "dev --topology none.yaml", "dev --topology bad.yaml", "dev --broker-listen nonsense",
		"run x", "run --roles sing", "run --topology none.yaml", "run --prefix /", "run --partitions 100000", "run --sasl-mechanism NTLM",
		"conformance C99", "replay", "replay fold none.jsonl", "replay fold a b", "replay fold --role sing", "replay record", "replay into",
		"replay into /", "replay into quiesce", "replay diff x",
		"job", "job start", "job start --type a --definition b", "job start --definition none.yaml", "job start --type a@x", "job start --type a --input @none",
		"job start a:b --type a", "job start --type a --notify x", "job start --type a --timeout 1s", "job show", "job list --limit -1", "job list --label x",
		"job types none.yaml", "job types bad.yaml", "job extend j", "job policy j --step s", "job extend j --no-progress-for 1m",
		"stats --from yesterday", "size", "size x --run 1s", "size 10", "size 10 --run 1s --retries 2", "size 10 --run 2h", "size 10 --step x",
		"worker", "worker --queue q", "worker --queue a:b --exec true", "worker --queue q --exec a --split b", "worker --queue q --exec a --concurrency -1",
		"bench", "bench sing", "bench ingest x", "bench ingest --k -1", "bench hot --order sideways", "bench latency --n 3 --batches 9",
	} {
		r := run(t, "", strings.Fields(line)...)
		require.Equal(t, cli.ExitUsage, r.code, "quiesce %s: %s", line, r.err)
		require.NotEmpty(t, r.err, line)
	}
}

func TestBenchPrintsOneJSONLine(t *testing.T) {
	isolate(t)
	for _, line := range []string{"bench latency --batches 5", "bench ingest --n 2000 --k 7 --batches 20 --active 3", "bench hot --n 200000 --only"} {
		r := run(t, "", append(strings.Fields(line), "--json")...)
		require.Equal(t, cli.ExitOK, r.code, r.err)
		require.Equal(t, 1, strings.Count(r.out, "\n"))
		var fields map[string]any
		require.NoError(t, json.Unmarshal([]byte(r.out), &fields))
		require.Equal(t, "quiesce "+line, fields["command"])
		require.Equal(t, "embedded", fields["broker"])
	}
}
