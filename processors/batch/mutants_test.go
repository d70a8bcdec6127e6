package batch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
)

// TestEveryRuleIsMissed switches one rule off at a time: the scenario holds with the rule and does not without it.
func TestEveryRuleIsMissed(t *testing.T) {
	for name, c := range map[string]struct {
		off   mutants
		holds func(e *env) bool
	}{
		"chunk key without run": {mutants{chunkKeyWithoutRun: true}, func(e *env) bool {
			e.start(&codecs.BatchStart{})
			e.seal(2)
			e.round(1, 0, 1, codecs.OK)
			e.start(&codecs.BatchStart{Run: "s"})
			e.step(codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "s", Total: 2})
			r := e.step(codecs.TypeBatchReport, &codecs.BatchReport{Run: "s", Items: []*codecs.ReportItem{codecs.NewItem(0, 0, codecs.OK)}})
			return r.run.State == codecs.State_sealed // one task of the new run is open
		}},
		"failed set of an older round counted": {mutants{oldFailuresCount: true}, func(e *env) bool {
			e.start(&codecs.BatchStart{})
			e.seal(2)
			e.round(1, 0, 0, codecs.OK)
			e.round(1, 1, 1, codecs.Failed)
			return e.command("1", "redrive", nil).run.State == codecs.State_sealed
		}},
		"terminal id without round": {mutants{terminalWithoutRnd: true}, func(e *env) bool {
			e.start(&codecs.BatchStart{})
			e.seal(1)
			e.round(1, 0, 0, codecs.Failed)
			e.command("1", "redrive", nil)
			e.round(2, 0, 0, codecs.OK)
			return len(e.ends) == 2 && e.ends[0] != e.ends[1]
		}},
		"seal without completion check": {mutants{sealDoesNotLook: true}, func(e *env) bool {
			e.start(&codecs.BatchStart{})
			e.round(1, 0, 9, codecs.OK)
			return e.seal(10).run.State == codecs.State_completed
		}},
		"timeout counted as success": {mutants{timeoutIsSuccess: true}, func(e *env) bool {
			e.start(&codecs.BatchStart{OnDeadline: "close", Deadlines: &codecs.Deadlines{CompleteWithin: 10}})
			e.seal(1)
			e.now += 10
			return e.nudge().run.State == codecs.State_completed_with_failures
		}},
		"late completion counted": {mutants{lateCounts: true}, func(e *env) bool {
			e.start(&codecs.BatchStart{})
			e.seal(2)
			e.command("1", "cancel", nil)
			return e.round(1, 0, 1, codecs.OK).run.tally().Ok == 0
		}},
		"unexpected id before the seal counted": {mutants{countUnexpected: true}, func(e *env) bool {
			e.start(&codecs.BatchStart{})
			e.round(1, 7, 7, codecs.OK) // no task, N is 2
			e.seal(2)
			return e.round(1, 0, 0, codecs.OK).run.State == codecs.State_sealed
		}},
		"counter instead of set": {mutants{countReports: true}, func(e *env) bool {
			e.start(&codecs.BatchStart{})
			e.seal(3)
			e.round(1, 0, 0, codecs.OK)
			return e.round(1, 0, 0, codecs.OK).run.State == codecs.State_sealed // a duplicate
		}},
		"terminal at the first leg": {mutants{firstLeg: true}, func(e *env) bool {
			e.start(&codecs.BatchStart{Legs: []*codecs.Leg{{Stage: "a", Topic: "x"}, {Stage: "b", Topic: "y"}}})
			e.seal(1)
			r := e.step(codecs.TypeBatchReport, &codecs.BatchReport{Run: "r", Legs: 2, Items: []*codecs.ReportItem{codecs.NewItem(0, 0, codecs.OK)}})
			return r.run.State == codecs.State_sealed
		}},
		"END counted, not a set": {mutants{endsCounted: true}, func(e *env) bool {
			e.start(&codecs.BatchStart{Mode: "markers", Units: []*codecs.UnitSet{{Stage: "a", Topic: "x", Partitions: 2}}})
			e.seal(1)
			end := &codecs.BatchEnd{Run: "r", Unit: &codecs.Unit{Stage: "a", Topic: "x"}}
			e.step(codecs.TypeBatchEnd, end)
			return e.step(codecs.TypeBatchEnd, end).run.State == codecs.State_sealed
		}},
		"delta instead of absolute chunk counts": {mutants{deltas: true}, func(e *env) bool {
			e.start(&codecs.BatchStart{})
			e.round(1, 5, 9, codecs.OK)
			e.seal(5) // none of them is a task
			return e.round(1, 0, 3, codecs.OK).run.State == codecs.State_sealed
		}},
		"a replay judged by what followed": {mutants{gateNow: true}, func(e *env) bool {
			e.start(&codecs.BatchStart{})
			e.seal(2)
			e.round(1, 0, 0, codecs.OK)
			e.command("1", "cancel", nil)
			key := codecs.ChunkKey("b", "r", 0)
			delete(e.rows, key) // a crash came before the chunk was written
			delete(e.cached, key)
			for _, rec := range e.history {
				e.feed(rec, func(codecs.Message) {})
			}
			return e.chunk(key).n[codecs.OK] == 1
		}},
		"END of any unit counted": {mutants{anyUnit: true}, func(e *env) bool {
			e.start(&codecs.BatchStart{Mode: "markers", Units: []*codecs.UnitSet{{Stage: "a", Topic: "x", Partitions: 2}}})
			e.seal(1)
			for _, p := range []uint32{0, 7} {
				e.step(codecs.TypeBatchEnd, &codecs.BatchEnd{Run: "r", Unit: &codecs.Unit{Stage: "a", Topic: "x", Partition: p}})
			}
			return e.header().run.State == codecs.State_sealed
		}},
	} {
		t.Run(name, func(t *testing.T) {
			require.True(t, c.holds(quietEnv(t, mutants{})), "with the rule")
			require.False(t, c.holds(quietEnv(t, c.off)), "without the rule")
		})
	}
}

// quietEnv does not check what only holds for a right machine.
func quietEnv(t *testing.T, off mutants) *env {
	e := newEnv(t, off)
	e.cached = map[string]codecs.Row{}
	e.wrong = off != mutants{}
	return e
}
