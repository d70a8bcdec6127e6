package processors

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mutant is the runtime with one rule switched off, or a machine that breaks its contract.
type mutant struct {
	name    string
	off     rules
	machine func(*tally)
	// scenario of the model checker that shows it within so many states (0 = 3,000); "" = none does.
	scenario string
	within   int
	// matrix: some schedule of the crash matrix shows it, too.
	matrix bool
	// test that shows it, too, by name.
	test string
}

// mutants are all of them. Each rule of rules is switched off in one.
var mutants = []mutant{
	// A decision is durable before it is seen, seen before its input is committed, in input order.
	{name: "outputs before the row", off: rules{outputsBeforeRow: true}, scenario: "a batch completes", matrix: true, test: "TestOutputsWaitForTheRow"},
	{name: "whole outbox sent again", off: rules{resendAll: true}, scenario: "rows and outputs of several keys", within: 6000, matrix: true},
	{name: "outputs row by row", off: rules{rowByRow: true}, scenario: "rows and outputs of several keys", matrix: true},
	{name: "commit before outputs are acknowledged", off: rules{commitEarly: true}, scenario: "sends that fail", test: "TestOffsetWaitsForTheOutputs"},
	{name: "commit when rows are sent", off: rules{commitUnacked: true}, scenario: "a batch completes", matrix: true},
	{name: "send errors ignored", off: rules{ignoreSendErrors: true}, scenario: "sends that fail", matrix: true},
	// A cut starts when an output is due, else its pace is bounded by bytes.
	{name: "a due output waits", off: rules{lateDue: true}, test: "TestDueOutputCutsAtOnce"},
	{name: "cuts not stretched by bytes", off: rules{unpaced: true}, test: "TestCutsAreStretchedByBytes"},
	// One claim, one writer.
	{name: "no claim", off: rules{noClaim: true}, scenario: "a batch completes", matrix: true},
	{name: "gap not read", off: rules{ignoreGap: true}, scenario: "a batch completes", matrix: true},
	{name: "outputs before the gap is handled", off: rules{outputsBeforeGap: true}, scenario: "a batch completes", matrix: true},
	{name: "a gap that is compacted away ignored", off: rules{compactedGapOK: true}, scenario: "two zombies and the cleaner", within: 30_000, test: "TestCompactedGapEndsTheOwnership"},
	{name: "stale keys not rewritten at recovery", off: rules{keepStale: true}, scenario: "a batch completes", matrix: true},
	{name: "stored offset over an unread gap", off: rules{offsetOverGap: true}, scenario: "two zombies", test: "TestStoredOffsetWaitsForTheRewrite"},
	{name: "parts before their header", off: rules{partsFirst: true}, scenario: "inputs while a cut is in flight", matrix: true},
	{name: "a part reads its header", machine: func(m *tally) { m.nosy = true }, scenario: "inputs while a cut is in flight"},
	{name: "header by deltas", machine: func(m *tally) { m.deltas = true }, test: "TestHeaderTakesAbsoluteCounts"},
	{name: "deleted in one step", off: rules{deleteAtOnce: true}, scenario: "a batch is collected", matrix: true},
	{name: "null before the position", off: rules{nullBeforePosition: true}, scenario: "a batch is collected", matrix: true},
	{name: "status not repeated at take-over", off: rules{noStatusRepeat: true}, matrix: true},
	{name: "gap of the status not read", off: rules{ignoreStatusGap: true}, scenario: "status of a quarantined batch"},
	// The table knows its own position.
	{name: "position of rows only", off: rules{positionOfRows: true}, scenario: "a batch completes", matrix: true},
	{name: "position row deleted", off: rules{deletePosition: true}, scenario: "a batch is collected"},
	{name: "the group's offset decides", off: rules{followGroup: true}, test: "TestGroupOffsetsDoNotDecide"},
	{name: "position not bound to the topic id", off: rules{ignoreTopicID: true}, test: "TestPositionIsBoundToTheTopic"},
	{name: "repeats of machine inputs not dropped", off: rules{noDedupe: true}, scenario: "repeats of another machine", matrix: true},
	// Poison stops nothing, foreign partitioners split no row.
	{name: "poison stops the partition", off: rules{poisonStops: true}, scenario: "poison", matrix: true},
	{name: "no quarantine", off: rules{noQuarantine: true}, scenario: "poison", matrix: true},
	{name: "wrong partition taken", off: rules{noReroute: true}, test: "TestWrongPartitionIsMovedOnce"},
	// The processor comes back, and does not pause; topics are checked.
	{name: "the processor gives up", off: rules{giveUp: true}, test: "TestProcessorWaitsForTopics"},
	{name: "pause at a rebalance", off: rules{gokaPause: true}, test: "TestRebalanceLosesNothingAndDoesNotPause"},
	{name: "a table that is not compacted", off: rules{anyTopic: true}, test: "TestTableMustBeCompacted"},
	// The local copy.
	{name: "dirty rows evicted", off: rules{evictDirty: true}, scenario: "rows and outputs of several keys", matrix: true},
	{name: "a local copy older than the deletes kept", off: rules{keepOldStore: true}, test: "TestOldLocalCopyIsDiscarded"},
	{name: "a damaged local copy kept", off: rules{keepDamaged: true}, test: "TestDamagedLocalCopyIsReadAgain"},
}

// TestMutantsInAllInterleavings: the model checker finds each mutant that its schedules can show.
func TestMutantsInAllInterleavings(t *testing.T) {
	for _, m := range mutants {
		if m.scenario == "" || m.within > 10_000 && !long() {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(scenarios(), func(sc scenario) bool { return sc.name == m.scenario })
			require.GreaterOrEqual(t, i, 0, "no scenario %q", m.scenario)
			sc := scenarios()[i]
			sc.states = max(m.within, 3000)
			e := explore(&sc, m)
			require.Error(t, e.fault, "survives: %s", e)
			t.Logf("%d states, %d runs: %.200q", e.states, e.runs, e.fault)
		})
	}
}

// TestMutantsInTheCrashMatrix: some random schedule finds each mutant that it can show.
func TestMutantsInTheCrashMatrix(t *testing.T) {
	most := uint64(4_000)
	for _, m := range mutants {
		if !m.matrix {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= most; seed++ {
				if err := runSchedule(seed, m.off); err != nil {
					t.Logf("seed %d: %.200q", seed, err)
					return
				}
			}
			require.Fail(t, "survives", "%d schedules", most)
		})
	}
}

// TestEveryRuleHasItsMutant: no rule can be switched off without a test that fails for it, and the document names all.
func TestEveryRuleHasItsMutant(t *testing.T) {
	doc, err := os.ReadFile("../docs/attack.md")
	require.NoError(t, err)
	sources := testSources(t)
	named := map[string]string{}
	for _, m := range mutants {
		require.True(t, m.scenario != "" || m.matrix || m.test != "", "nothing kills %q", m.name)
		matrix := ""
		if m.matrix {
			matrix = "yes"
		}
		line := "| " + strings.Join([]string{m.name, m.scenario, matrix, m.test}, " | ") + " |"
		require.Contains(t, string(doc), line, "docs/attack.md says something else")
		v := reflect.ValueOf(m.off)
		for i := range v.NumField() {
			if v.Field(i).Bool() {
				named[v.Type().Field(i).Name] = m.name
				if m.test != "" {
					require.Contains(t, sources[m.test], "rules{"+v.Type().Field(i).Name+": true}", "%s does not switch %s off", m.test, m.name)
				}
			}
		}
		if m.test != "" {
			require.NotEmpty(t, sources[m.test], "no test %s", m.test)
		}
	}
	rs := reflect.TypeOf(rules{})
	for i := range rs.NumField() {
		require.Contains(t, named, rs.Field(i).Name, "a rule that no mutant switches off")
	}
}

// testSources are the test functions of this package as text.
func testSources(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, text, 0)
		require.NoError(t, err)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Test") {
				all[fn.Name.Name] = string(text[set.Position(fn.Pos()).Offset:set.Position(fn.End()).Offset])
			}
		}
	}
	return all
}
