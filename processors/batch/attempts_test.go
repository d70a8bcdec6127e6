package batch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
)

// What a cut announces counts the attempts of the tasks that ended, not of repeated reports.
func TestSubjobsCompletedCountsAttempts(t *testing.T) {
	e := newEnv(t, mutants{})
	e.step(codecs.TypeBatchStart, &codecs.BatchStart{Run: "r", Owner: &codecs.Owner{Job: "j", Step: "s", Type: "t"}})
	e.step(codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "r", Total: 20})
	item := func(first, last uint32, o codecs.Outcome_Code, attempt uint32) *codecs.ReportItem {
		it := codecs.NewItem(first, last, o)
		it.Attempt = attempt
		return it
	}
	e.step(codecs.TypeBatchReport, &codecs.BatchReport{Run: "r", Items: []*codecs.ReportItem{item(0, 4, codecs.OK, 1), item(5, 6, codecs.Failed, 3)}})
	e.step(codecs.TypeBatchReport, &codecs.BatchReport{Run: "r", Items: []*codecs.ReportItem{item(4, 7, codecs.OK, 2)}}) // 7 alone is new
	e.step(codecs.TypeBatchReport, &codecs.BatchReport{Run: "r", Items: []*codecs.ReportItem{item(8, 8, codecs.OK, 0)}}) // says nothing: one

	var attempts []uint64
	for _, m := range e.sent {
		if d, ok := m.Data.(*codecs.SubjobsCompleted); ok {
			attempts = append(attempts, d.Attempts)
			require.Equal(t, "t", d.Owner.Type)
		}
	}
	require.Equal(t, []uint64{5 + 2*3, 2, 1}, attempts)
}
