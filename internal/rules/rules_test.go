package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func source(pkg string, imports ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n", pkg)
	for _, i := range imports {
		fmt.Fprintf(&b, "import _ %q\n", i)
	}
	return b.String()
}

func function(lines int) string {
	return "package p\nfunc f() {\n" + strings.Repeat("\tg()\n", lines-2) + "}\n"
}

func config(fields int) string {
	var b strings.Builder
	for i := range fields {
		fmt.Fprintf(&b, "\tF%d int\n", i)
	}
	return "package p\ntype Config struct {\n" + b.String() + "}\n"
}

// Every rule is shown one breach (say is part of its message) and one file beside it that keeps the rule.
func TestEveryRuleBites(t *testing.T) {
	const own = ModulePath + "/"
	tests := []struct {
		rule           Rule
		path, bad, say string
		goodPath, good string
	}{
		{vocabularyImports, "codecs/x.go", source("codecs", own+"topology"), "codecs imports topology", "codecs/x.go", source("codecs", "fmt", "google.golang.org/protobuf/proto")},
		{topologyImports, "topology/x.go", source("topology", own+"processors"), "topology imports processors", "topology/x.go", source("topology", own+"codecs")},
		{machineImports, "processors/batch/x.go", source("batch", own+"processors"), "imports processors: machines import codecs", "processors/batch/x.go", source("batch", own+"codecs", "fmt", "time")},
		{machineImports, "processors/job/x.go", source("job", own+"processors/batch"), "imports machine processors/batch", "processors/job/x.go", source("job", own+"topology")},
		{machineImports, "processors/job/x_test.go", source("job", own+"processors/batch"), "imports machine processors/batch", "processors/job/x_test.go", source("job", own+"processors", "os", "testing")},
		{machineImports, "processors/stats/x.go", source("stats", "log/slog"), "imports log/slog", "processors/stats/x.go", source("stats", "slices", "math")},
		{machineImports, "processors/notify/x.go", source("notify", "math/rand/v2"), "imports math/rand/v2", "processors/x.go", source("processors", "math/rand/v2")},
		{machineImports, "processors/markers/x.go", source("markers", "github.com/twmb/franz-go/pkg/kgo"), "franz-go", "processors/worker/x.go", source("worker", "github.com/twmb/franz-go/pkg/kgo")},
		{machineImports, "processors/counts/x.go", source("counts", "sync"), "imports sync", "processors/countsmore/x.go", source("countsmore", "sync")},
		{libraryImports, "processors/worker/x.go", source("worker", own+"internal/broker"), "imports internal/broker", "processors/worker/x_test.go", source("worker", own+"internal/broker")},
		{gokaImports, "internal/sidecar/x.go", source("sidecar", "github.com/lovoo/goka"), "use package processors", "processors/goka.go", source("processors", "github.com/lovoo/goka")},
		{gokaImports, "processors/worker/x.go", source("worker", "github.com/lovoo/goka/storage"), "use package processors", "processors/x_test.go", source("processors", "github.com/lovoo/goka/tester")},
		{cliImports, "internal/sidecar/x.go", source("sidecar", own+"internal/cli"), "imports internal/cli", "cmd/quiesce/main.go", source("main", own+"internal/cli")},
		{machineClock, "processors/batch/x.go", "package batch\nimport \"time\"\nvar t = time.Now()", "time.Now: take the time from the event", "processors/batch/x.go", "package batch\nimport \"time\"\nvar t = time.UnixMilli(1)"},
		{machineClock, "processors/batch/x.go", "package batch\nimport clock \"time\"\nvar t = clock.NewTimer(1)", "time.NewTimer", "processors/x.go", "package processors\nimport \"time\"\nvar t = time.Now()"},
		{testSleeps, "topology/x_test.go", "package topology\nimport \"time\"\nfunc f() { time.Sleep(1) }", "wait for the condition", "topology/x.go", "package topology\nimport \"time\"\nfunc f() { time.Sleep(1) }"},
		{testSleeps, "topology/x_test.go", "package topology\nimport \"time\"\nfunc f() { time.Sleep(1) }", "wait for the condition", "topology/x_test.go", "package topology\nimport (\"testing/synctest\"; \"time\")\nfunc f() { synctest.Test(t, func() { time.Sleep(1) }) }"},
		{testSkips, "topology/x_test.go", "package topology\nfunc f() { t.Skip(\"flaky\") }", "rules.SkipReasons", "topology/x_test.go", "package topology\nfunc f() { t.Skip(\"takes minutes: make test-long\") }"},
		{testSkips, "topology/x_test.go", "package topology\nfunc f() { t.Skip() }", "rules.SkipReasons", "topology/x.go", "package topology\nfunc f() { dec.Skip() }"},
		{testSkips, "internal/x/x.go", "package x\nimport \"testing\"\nfunc f(t testing.TB) { t.SkipNow() }", "SkipNow", "internal/x/x.go", "package x\nfunc f(t reader) { t.SkipNow() }"},
		{testSkips, "internal/x/x_test.go", "package x\nfunc f() { worker.Skip(\"x\") }", "rules.SkipReasons", "internal/x/x_test.go", "package x\nimport \"" + own + "processors/worker\"\nfunc f() { worker.Skip(\"x\") }"},
		{fileLength, "internal/x/x.go", "package x\n" + strings.Repeat("\n", 400), "split it by concept", "internal/x/x_test.go", "package x\n" + strings.Repeat("\n", 400)},
		{fileLength, "internal/x/x.go", "package x\n" + strings.Repeat("\n", 400), "split it by concept", "internal/x/x.go", "package x\n" + strings.Repeat("\n", 399)},
		{functionLength, "internal/x/x.go", function(61), "f has 61 lines", "internal/x/x.go", function(60)},
		{mainLength, "cmd/quiesce/main.go", "package main\n" + strings.Repeat("\n", 29), "move its body", "cmd/quiesce/main.go", "package main\n" + strings.Repeat("\n", 28)},
		{configFields, "internal/x/x.go", config(16), "Config has 16 fields", "internal/x/x.go", config(15)},
		{packageNames, "internal/util/x.go", "package strange", `"util"`, "internal/rules/x.go", "package rules"},
		{packageNames, "internal/x/x.go", "package httputil", `"httputil"`, "codecs/x.go", "package codecs"},
		{unfinished, "internal/x/x.go", "package x\n// TO" + "DO: later", "do it, or say", "internal/x/x.go", "package x\n// To do nothing is fine."},
	}
	shown := map[string]bool{}
	for _, tt := range tests {
		shown[tt.rule.Name] = true
		bad, err := Parse(tt.path, []byte(tt.bad))
		require.NoError(t, err)
		faults := tt.rule.Check(bad)
		require.Len(t, faults, 1, "%s: %s", tt.rule.Name, tt.bad)
		require.Contains(t, faults[0].String(), tt.path+":")
		require.Contains(t, faults[0].Say, tt.say)
		good, err := Parse(tt.goodPath, []byte(tt.good))
		require.NoError(t, err)
		require.Empty(t, tt.rule.Check(good), "%s: %s", tt.rule.Name, tt.good)
	}
	for _, rule := range All() {
		require.True(t, shown[rule.Name], "no breach of %q is shown", rule.Name)
		require.NotEmpty(t, rule.Why)
	}
}

func TestMachinePaths(t *testing.T) {
	for _, bad := range []string{"cd /wo" + "rk/x", "see /ro" + "ot/.cache", "/ho" + "me/jane/x", "in /Us" + "ers/jane/x"} {
		require.Len(t, MachinePaths("README.md", []byte("first\n"+bad+"\n")), 1, bad)
	}
	for _, good := range []string{"processors/worker", "/workers/x", "https://example.org/home", "internal/rules/work.go"} {
		require.Empty(t, MachinePaths("README.md", []byte(good)), good)
	}
	require.Empty(t, MachinePaths("picture.png", []byte("\x00/wo"+"rk/")))
}
