package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// result of one command line.
type result struct {
	code     int
	out, err string
}

// run executes a command line in the test's process.
func run(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := Run(t.Context(), args, strings.NewReader(stdin), &out, &errs)
	return result{code, out.String(), errs.String()}
}

// isolate keeps the machine's own configuration out of a test.
func isolate(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	t.Setenv("HOME", dir)
	t.Chdir(dir)
	return dir
}

// walk visits every command of the tree.
func walk(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		walk(sub, visit)
	}
}

func TestEveryCommandHasAnExampleAndHelp(t *testing.T) {
	isolate(t)
	walk(newRoot(&app{}), func(c *cobra.Command) {
		if c.Name() == "help" || strings.Contains(c.CommandPath(), " completion") {
			return
		}
		require.NotEmpty(t, c.Example, c.CommandPath())
		require.NotEmpty(t, c.Short, c.CommandPath())
		for _, line := range strings.Split(c.Example, "\n") {
			require.Contains(t, line, "quiesce ", "example of %s", c.CommandPath())
		}
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		r := run(t, "", args...)
		require.Equal(t, ExitOK, r.code, c.CommandPath())
		require.Contains(t, r.out, "Examples:", c.CommandPath())
	})
}

func TestUnknownWordsAreUsageErrors(t *testing.T) {
	isolate(t)
	for _, line := range []string{"", "nonsense", "topology", "topology nonsense", "--nonsense", "topology validate --nonsense x",
		"topology validate", "topology render", "topology render a b"} {
		r := run(t, "", strings.Fields(line)...)
		require.Equal(t, ExitUsage, r.code, "quiesce %s", line)
		require.Contains(t, r.err, "quiesce: ", line)
		require.Contains(t, r.err, "--help", line)
		require.Empty(t, r.out, line)
	}
	require.Contains(t, run(t, "", "topolgy").err, `did you mean "topology"?`)
}

func TestCompletionPrints(t *testing.T) {
	isolate(t)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		r := run(t, "", "completion", shell)
		require.Equal(t, ExitOK, r.code)
		require.Contains(t, r.out, "quiesce")
	}
	r := run(t, "", "__complete", "topology", "")
	require.Contains(t, r.out, "validate")
}

const topologyFile = `topology: t
version: 1
source: a
topics: {a: {partitions: 2}, b: {partitions: 2}}
stages:
  one: {in: [a], out: [b], group: t.one}
  two: {in: [b], group: t.two}
`

func TestTopologyCommands(t *testing.T) {
	dir := isolate(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "t.yaml"), []byte(topologyFile), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bad.yaml"), []byte(strings.Replace(topologyFile, "[b]", "[c]", 2)), 0o600))

	r := run(t, "", "topology", "validate", "t.yaml")
	require.Equal(t, ExitOK, r.code, r.err)
	require.Contains(t, r.out, "t version 1 is valid")

	r = run(t, "", "topology", "validate", "--json", "t.yaml", "bad.yaml")
	require.Equal(t, ExitError, r.code)
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	require.Len(t, lines, 2)
	var v validation
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &v))
	require.False(t, v.Valid)
	require.NotEmpty(t, v.Faults)

	require.Equal(t, ExitUsage, run(t, "", "topology", "validate", "none.yaml").code)
	require.Equal(t, ExitUsage, run(t, "", "topology", "validate", "--mode", "hope", "t.yaml").code)
	require.Equal(t, ExitUsage, run(t, "", "topology", "render", "--format", "gif", "t.yaml").code)
	require.Equal(t, ExitUsage, run(t, "", "topology", "render", "bad.yaml").code)
	for format, want := range map[string]string{"text": "one", "mermaid": "flowchart", "dot": "digraph"} {
		r := run(t, "", "topology", "render", "--format", format, "t.yaml")
		require.Equal(t, ExitOK, r.code, r.err)
		require.Contains(t, r.out, want)
	}
}

// settings: flag, then environment, then file.
func TestSettingsOrder(t *testing.T) {
	dir := isolate(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "t.yaml"), []byte(topologyFile), 0o600))
	render := func(args ...string) string {
		r := run(t, "", append([]string{"topology", "render", "t.yaml"}, args...)...)
		require.Equal(t, ExitOK, r.code, r.err)
		return r.out
	}
	text := render()
	require.NoError(t, os.WriteFile(filepath.Join(dir, configName), []byte("format: dot\n"), 0o600))
	require.Contains(t, render(), "digraph", "file")
	t.Setenv("QUIESCE_FORMAT", "mermaid")
	require.Contains(t, render(), "flowchart", "environment over file")
	require.Equal(t, text, render("--format", "text"), "flag over environment")

	t.Setenv("QUIESCE_FORMAT", "")
	other := filepath.Join(dir, "other.yaml")
	require.NoError(t, os.WriteFile(other, []byte("format: gif\n"), 0o600))
	r := run(t, "", "--config", other, "topology", "render", "t.yaml")
	require.Equal(t, ExitUsage, r.code)
}

func TestBadConfigurationIsAUsageError(t *testing.T) {
	dir := isolate(t)
	file := filepath.Join(dir, configName)
	for text, want := range map[string]string{
		"bootstrap-server: x\n": "unknown keys: bootstrap-server",
		"json: perhaps\n":       `json: invalid value "perhaps"`,
		"a: [\n":                "configuration",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		r := run(t, "", "topology", "validate", "x")
		require.Equal(t, ExitUsage, r.code, text)
		require.Contains(t, r.err, want)
	}
	require.NoError(t, os.Remove(file))
	require.Equal(t, ExitUsage, run(t, "", "--config", "none.yaml", "topology", "validate", "x").code)
	t.Setenv("QUIESCE_JSON", "perhaps")
	require.Contains(t, run(t, "", "topology", "validate", "x").err, "QUIESCE_JSON")
}

func TestCancelledContextEndsACommand(t *testing.T) {
	isolate(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	require.Equal(t, ExitUsage, Run(ctx, []string{"topology", "validate", "none.yaml"}, strings.NewReader(""), &out, &errs))
}
