package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/internal/binary"
	"github.com/quiesce/quiesce/internal/cli"
	"github.com/quiesce/quiesce/internal/demo"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// a service that is killed in mid-run is named by the first line of explain within 5 s: stage, topic, partition, group,
// lag, time since the last progress.
func TestExplainNamesAKilledService(t *testing.T) {
	binary.Path(t)
	dir := isolate(t)
	file, tasks := filepath.Join(dir, "go-index.yaml"), filepath.Join(dir, "tasks.jsonl")
	require.NoError(t, os.WriteFile(file, demo.TopologyFile, 0o600))
	source := filepath.Join(dir, "source")
	require.NoError(t, os.Mkdir(source, 0o755))
	var lines strings.Builder
	for i := range 500 {
		name := fmt.Sprintf("f%d.go", i)
		require.NoError(t, os.WriteFile(filepath.Join(source, name), []byte("package p\n"), 0o600))
		fmt.Fprintf(&lines, "{\"path\":%q}\n", name)
	}
	require.NoError(t, os.WriteFile(tasks, []byte(lines.String()), 0o600))

	_, bootstrap, server := dev(t, "--topology", file)
	service := func(name string) *binary.Process {
		p := binary.Start(t, "demo", "stage", name, "--input", source, "--bootstrap-server", bootstrap)
		p.WaitFor("running")
		return p
	}
	for _, name := range []string{"read", "digest", "report"} {
		service(name)
	}
	service("parse").Kill() // before there is anything to do: its partitions have no owner soon
	r := run(t, "", "feed", "--batch", "b-1", "--topology", file, "--mode", "markers", "--key", "path", "--bootstrap-server", bootstrap, tasks)
	require.Equal(t, cli.ExitOK, r.code, r.err)

	want := []string{"stage parse, ", "topic go-index.files, ", "partition ", "group go-index.parse: ", "lag ", "no progress for "}
	require.Eventually(t, func() bool {
		first, _, _ := strings.Cut(run(t, "", "batch", "explain", "b-1", "--server", server).out, "\n")
		for _, w := range want {
			if !strings.Contains(first, w) {
				return false
			}
		}
		return true
	}, 5*time.Second, 50*time.Millisecond)

	service("parse")
	r = run(t, "", "wait", "b-1", "--timeout", "1m", "--server", server, "--attempted")
	require.Equal(t, cli.ExitOK, r.code, r.err)
}

// with 5 of 10,000 reports dropped, missing prints exactly those five.
func TestMissingNamesExactlyTheDropped(t *testing.T) {
	binary.Path(t)
	isolate(t)
	_, _, server := dev(t)
	c := newHTTP(t, server)
	c.post("", `{"id":"b-1","run":"r"}`)
	c.post("/b-1:seal", `{"run":"r","total":10000}`)
	dropped := map[int]bool{17: true, 4000: true, 4001: true, 9998: true, 9999: true}
	var items []map[string]any
	for i := range 10_000 {
		if !dropped[i] {
			items = append(items, map[string]any{"first": i, "outcome": "ok"})
		}
		if len(items) == 1000 || i == 9999 {
			b, err := json.Marshal(map[string]any{"run": "r", "items": items})
			require.NoError(t, err)
			c.post("/b-1/reports", string(b))
			items = nil
		}
	}
	var b api.Batch
	require.Eventually(t, func() bool {
		r := run(t, "", "batch", "show", "b-1", "--json", "--server", server)
		return json.Unmarshal([]byte(r.out), &b) == nil && b.Counts.OK == 9995
	}, time.Minute, 20*time.Millisecond)
	require.Equal(t, "17\n4000-4001\n9998-9999\n", run(t, "", "batch", "missing", "b-1", "--server", server).out)
}
