package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/binary"
	"github.com/quiesce/quiesce/internal/cli"
)

func TestFeedSendsOneTaskALine(t *testing.T) {
	bootstrap, dir := deployment(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in.jsonl"), []byte("{\"id\":\"x\"}\n\n{\"id\":7}\n{\"id\":\"y\",\"more\":[1]}"), 0o600))
	r := run(t, "", "feed", "--bootstrap-server", bootstrap, "--batch", "b-1", "--topology", "t.yaml", "--key", "id", "--label", "who=test", "in.jsonl")
	require.Equal(t, cli.ExitOK, r.code, r.err)
	var done struct {
		Batch, Run string
		Total      int
	}
	require.NoError(t, json.Unmarshal([]byte(r.out), &done))
	require.Equal(t, "b-1", done.Batch)
	require.Equal(t, 3, done.Total)

	got := map[string]string{}
	for _, rec := range records(t, bootstrap, "a") {
		require.Equal(t, "b-1", header(rec, codecs.HeaderBatch))
		require.Equal(t, done.Run, header(rec, codecs.HeaderRun))
		got[header(rec, codecs.HeaderIndex)+" "+string(rec.Key)] = string(rec.Value)
	}
	require.Equal(t, map[string]string{"0 x": `{"id":"x"}`, "1 7": `{"id":7}`, "2 y": `{"id":"y","more":[1]}`}, got)
	control := records(t, bootstrap, "quiesce.control")
	require.Equal(t, "quiesce.batch.start.v1", header(control[0], codecs.HeaderType))
	require.Equal(t, "quiesce.batch.seal.v1", header(control[1], codecs.HeaderType))
	require.FileExists(t, filepath.Join(dir, "in.jsonl.quiesce"))

	r = run(t, "", "feed", "--bootstrap-server", bootstrap, "--batch", "b-1", "--topology", "t.yaml", "--key", "id", "in.jsonl")
	require.Equal(t, cli.ExitOK, r.code, r.err)
	require.Contains(t, r.out, done.Run, "the same run again")
	require.Len(t, records(t, bootstrap, "a"), 3, "nothing is sent twice")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "in.jsonl"), []byte("{\"id\":\"z\"}\n{\"id\":7}\n{\"id\":\"y\"}\n"), 0o600))
	r = run(t, "", "feed", "--bootstrap-server", bootstrap, "--batch", "b-1", "--topology", "t.yaml", "--key", "id", "in.jsonl")
	require.Equal(t, cli.ExitUsage, r.code)
	require.Contains(t, r.err, "not the one that was fed before")
}

func TestFeedRefusesBadInput(t *testing.T) {
	bootstrap, dir := deployment(t)
	good := []string{"--bootstrap-server", bootstrap, "--topology", "t.yaml"}
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("bad.jsonl", "{\"id\":1}\nnot json\n")
	write("nokey.jsonl", "{\"id\":1}\n{}\n")
	write("array.jsonl", "[1]\n")
	write("good.jsonl", "{\"id\":1}\n")
	for line, want := range map[string]string{
		"--batch b1 --topology t.yaml bad.jsonl":               "line 2: not JSON",
		"--batch b2 --topology t.yaml --key id nokey.jsonl":    `line 2: no field "id"`,
		"--batch b3 --topology t.yaml --key id array.jsonl":    "line 1: not a JSON object",
		"--topology t.yaml good.jsonl":                         "--batch is missing",
		"--batch b4 good.jsonl":                                "--topology is missing",
		"--batch b:5 --topology t.yaml good.jsonl":             "b:5",
		"--batch b6 --topology none.yaml good.jsonl":           "none.yaml",
		"--batch b7 --topology t.yaml none.jsonl":              "none.jsonl",
		"--batch b8 --topology t.yaml .":                       "not a file",
		"--batch b9 --topology t.yaml -":                       "--checkpoint",
		"--batch b10 --topology t.yaml --mode hope good.jsonl": "--mode",
		"--batch b11 --topology t.yaml":                        "accepts 1 arg",
		"--batch b12 --topology t.yaml --feeders 2 good.jsonl": "several feeders",
	} {
		args := append([]string{"feed", "--bootstrap-server", bootstrap}, strings.Fields(line)...)
		r := run(t, "", args...)
		require.Equal(t, cli.ExitUsage, r.code, "feed %s: %s", line, r.err)
		require.Contains(t, r.err, want, line)
	}
	r := run(t, "{\"id\":1}\n", append([]string{"feed", "--batch", "b20", "--checkpoint", "c", "-"}, good...)...)
	require.Equal(t, cli.ExitOK, r.code, r.err)
}

// a feed that is killed goes on where it stopped: every task is there, with the same index, and no other.
func TestFeedGoesOnAfterAKill(t *testing.T) {
	binary.Path(t) // built before the test changes its folder
	bootstrap, dir := deployment(t)
	const n = 300_000
	var in strings.Builder
	for i := range n {
		fmt.Fprintf(&in, "{\"n\":%d}\n", i)
	}
	file, checkpoint := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "in.jsonl.quiesce")
	args := []string{"feed", "--bootstrap-server", bootstrap, "--batch", "b-1", "--topology", filepath.Join(dir, "t.yaml"), file}

	// The first life reads a pipe that stays open after half of the input, so that it cannot be done before it is killed.
	require.NoError(t, syscall.Mkfifo(file, 0o600))
	p := binary.Start(t, args...)
	pipe, err := os.OpenFile(file, os.O_WRONLY, 0) // waits for the reader
	require.NoError(t, err)
	written := make(chan error, 1)
	go func() {
		_, err := pipe.WriteString(in.String()[:in.Len()/2])
		written <- err
	}()
	acked := 0
	require.Eventually(t, func() bool {
		var c struct{ Acked int }
		b, err := os.ReadFile(checkpoint)
		acked = c.Acked
		if err == nil && json.Unmarshal(b, &c) == nil {
			acked = c.Acked
		}
		return acked > 0
	}, time.Minute, 5*time.Millisecond)
	p.Signal(syscall.SIGKILL)
	p.Wait()
	if err := <-written; err != nil {
		t.Logf("the pipe broke with its reader: %v", err)
	}
	require.NoError(t, pipe.Close())
	require.Less(t, acked, n, "killed in the middle")
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.WriteFile(file, []byte(in.String()), 0o600))

	r := binary.Run(t, "", args...)
	require.Equal(t, cli.ExitOK, r.Code, r.Stderr)
	require.Contains(t, r.Stderr, "going on after")
	require.Contains(t, r.Stdout, fmt.Sprintf(`"total":%d`, n))
	values := map[string]string{}
	for _, rec := range records(t, bootstrap, "a") {
		i := header(rec, codecs.HeaderIndex)
		if had, ok := values[i]; ok {
			require.Equal(t, had, string(rec.Value))
		}
		values[i] = string(rec.Value)
		require.Equal(t, fmt.Sprintf(`{"n":%s}`, i), string(rec.Value))
	}
	require.Len(t, values, n)
}
