package batch

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
)

// TestConformance holds the entries that a machine shows best. Those that the wire shows are scripts in
// testdata/conformance at the root of the repository.
func TestConformance(t *testing.T) {
	t.Run("C06", outcomeFirstCollectionLater)
	t.Run("C28", idlePartitionsReportToo)
	t.Run("C40", redriveKeepsTheRecordedTasks)
	t.Run("C43", lateAfterCollection)
	t.Run("C45", tenMillionArePaged)
	t.Run("C46", sumsAlwaysAddUp)
}

// outcomeFirstCollectionLater: nothing is collected while the batch is open or its retention runs, and a task that was
// reported lost ends the batch.
func outcomeFirstCollectionLater(t *testing.T) {
	e := newEnv(t, mutants{})
	e.start(&codecs.BatchStart{Retention: 1000})
	e.seal(70_000)
	e.round(1, 0, 69_998, codecs.OK)
	e.now += 500_000
	r := e.nudge()
	keys, self := e.m.Collect(r)
	require.Empty(t, keys)
	require.False(t, self)
	r = e.round(1, 69_999, 69_999, codecs.Lost)
	require.Equal(t, codecs.State_completed_with_failures, r.run.State)
	keys, _ = e.m.Collect(r)
	require.Empty(t, keys, "retention counts from the end")
	e.now += 1000
	keys, self = e.m.Collect(e.nudge())
	require.Len(t, keys, 2, "both chunks")
	require.False(t, self, "the marker stands")
}

// idlePartitionsReportToo: a unit without data reports END like the others: it neither completes the batch nor blocks it,
// and while it is silent it is named.
func idlePartitionsReportToo(t *testing.T) {
	e := newEnv(t, mutants{})
	e.start(&codecs.BatchStart{Mode: modeMarkers, Units: []*codecs.UnitSet{{Stage: "a", Topic: "x", Partitions: 3}}})
	e.seal(4)
	end := func(p uint32, consumed uint64) *Row {
		return e.step(codecs.TypeBatchEnd, &codecs.BatchEnd{Run: "r", Unit: &codecs.Unit{Stage: "a", Topic: "x", Partition: p}, Consumed: consumed})
	}
	end(0, 4)
	r := end(2, 0)
	require.Equal(t, codecs.State_sealed, r.run.State)
	require.Len(t, r.MissingUnits(), 1)
	require.Equal(t, uint32(1), r.MissingUnits()[0].Partition)
	require.Equal(t, codecs.State_completed, end(1, 0).run.State)
	require.Empty(t, e.header().MissingUnits())
}

// redriveKeepsTheRecordedTasks: N and the manifest of the seal stand in every round; a seal with another input is refused.
func redriveKeepsTheRecordedTasks(t *testing.T) {
	e := newEnv(t, mutants{})
	e.start(&codecs.BatchStart{Queue: "q"})
	seal := &codecs.BatchSeal{Run: "r", Total: 3, PayloadDigest: []byte("d"), Chunks: []*codecs.ChunkPosition{{Offset: 70}}}
	e.step(codecs.TypeBatchSeal, seal)
	e.round(1, 0, 1, codecs.OK)
	e.round(1, 2, 2, codecs.Failed)
	e.command("1", "redrive", nil)
	last := e.orders[len(e.orders)-1]
	require.Equal(t, []uint32{2, 3, 2}, []uint32{last.Lo, last.Hi, last.Round})
	require.Equal(t, int64(70), last.Chunks[0].Offset)
	r := e.step(codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "r", Total: 4, PayloadDigest: []byte("other")})
	require.Equal(t, codecs.State_inconsistent, r.run.State)
}

// lateAfterCollection: a completion after collection is late and makes nothing live again.
func lateAfterCollection(t *testing.T) {
	e := newEnv(t, mutants{})
	e.start(&codecs.BatchStart{})
	e.seal(2)
	e.round(1, 0, 0, codecs.OK)
	e.command("1", "cancel", nil)
	e.command("2", "gc", nil)
	for key := range e.rows { // the runtime deletes what Collect named
		if key != e.batch {
			delete(e.rows, key)
		}
	}
	r := e.round(1, 1, 1, codecs.OK)
	require.Equal(t, codecs.State_collected, r.run.State)
	require.Len(t, e.rows, 1, "no chunk came back")
	require.Len(t, e.ends, 1)
	require.Equal(t, uint64(1), r.Audit.Late)
	s, _ := r.Snapshot()
	require.Equal(t, codecs.State_cancelled, s.PreviousState)
	require.Equal(t, uint32(1), s.Counts.Ok)
}

// tenMillionArePaged: a reader of ten million tasks takes bounded steps, and cancel is one event that touches no chunk.
func tenMillionArePaged(t *testing.T) {
	e := newEnv(t, mutants{})
	e.cached = map[string]codecs.Row{}
	e.start(&codecs.BatchStart{})
	const n = 10_000_000
	e.seal(n)
	for at := uint32(0); at < n; at += 1 << 20 {
		e.round(1, at, min(at+1<<20-1, n-1), codecs.Outcome_unspecified)
	}
	seen, pages := uint32(0), 0
	for from := uint32(0); from < n; pages++ {
		refs := e.header().Chunks(0, from, 16)
		require.LessOrEqual(t, len(refs), 16)
		for _, ref := range refs {
			seen += ref.Tasks
			from = ref.First + ref.Tasks
		}
	}
	require.Equal(t, uint32(n), seen)
	require.Equal(t, 10, pages)
	var ev codecs.Event
	rec := e.record(codecs.TypeBatchCommand, &codecs.BatchCommand{Id: "1", Verb: "cancel"})
	require.NoError(t, e.m.Decode(&rec, &ev))
	require.Empty(t, e.m.Parts(e.header(), rec.Offset, &ev))
	require.Equal(t, uint32(n), e.feed(rec, e.note).run.tally().Cancelled)
}

// sumsAlwaysAddUp: env checks after every event that total is the sum of its parts.
func sumsAlwaysAddUp(t *testing.T) {
	e := newEnv(t, mutants{})
	e.start(&codecs.BatchStart{OnDeadline: "close", Deadlines: &codecs.Deadlines{CompleteWithin: 1000}})
	e.round(1, 3, 3, codecs.Outcome_unspecified)
	e.seal(10)
	for i, o := range []codecs.Outcome_Code{codecs.OK, codecs.Failed, codecs.Skipped, codecs.Cancelled, codecs.TimedOut, codecs.Lost} {
		e.round(1, uint32(i), uint32(i), o)
	}
	e.now += 1000
	require.Equal(t, uint32(5), e.nudge().run.tally().TimedOut)
	e.command("1", "redrive", nil)
	e.round(2, 9, 9, codecs.OK)
	require.Equal(t, uint32(3), e.command("2", "cancel", nil).run.tally().Ok+e.header().run.tally().Skipped)
}

// TestManyBatchesInterleaved: a thousand batches with the same task ids do not touch each other.
func TestManyBatchesInterleaved(t *testing.T) {
	envs := make([]*env, 1000)
	for i := range envs {
		envs[i] = newEnv(t, mutants{})
		envs[i].batch = fmt.Sprint("b", i)
		envs[i].start(&codecs.BatchStart{})
		envs[i].seal(3)
	}
	for task := range uint32(3) {
		for i, e := range envs {
			if (uint32(i)+task)%7 != 0 {
				e.round(1, task, task, codecs.OK)
			}
		}
	}
	for i, e := range envs {
		missing := 0
		for task := range 3 {
			if (i+task)%7 == 0 {
				missing++
			}
		}
		require.Equal(t, missing == 0, len(e.ends) == 1, e.batch)
		require.Equal(t, uint32(missing), e.header().run.tally().Pending)
	}
}

// TestIDUsedAgain: while a run is open its id is refused, or taken over; the chunks of older runs do not count.
func TestIDUsedAgain(t *testing.T) {
	e := newEnv(t, mutants{})
	e.start(&codecs.BatchStart{})
	e.seal(100_000)
	e.round(1, 0, 99_998, codecs.OK)
	require.Equal(t, "r", e.start(&codecs.BatchStart{Run: "s"}).run.Run)
	e.start(&codecs.BatchStart{Run: "s", ReuseOpen: "supersede"})
	e.step(codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "s", Total: 100_000})
	r := e.step(codecs.TypeBatchReport, &codecs.BatchReport{Run: "s", Items: []*codecs.ReportItem{codecs.NewItem(99_999, 99_999, codecs.OK)}})
	require.Equal(t, uint32(99_999), r.run.tally().Pending)
	require.Equal(t, []string{"b/r/1/terminal"}, e.ends)
	r = e.step(codecs.TypeBatchReport, &codecs.BatchReport{Run: "s", Items: []*codecs.ReportItem{codecs.NewItem(0, 99_998, codecs.OK)}})
	require.Equal(t, codecs.State_completed, r.run.State)
	keys, _ := e.m.Collect(r)
	require.Len(t, keys, 2, "the chunks of the run that is over")
	require.Equal(t, "t", e.start(&codecs.BatchStart{Run: "t"}).run.Run)
}

// TestBillionTasksFitTheRow: the header of the largest batch stays within its bound, near in order or not.
func TestBillionTasksFitTheRow(t *testing.T) {
	const n = 1_000_000_000
	e := newEnv(t, mutants{})
	e.cached = map[string]codecs.Row{}
	e.start(&codecs.BatchStart{MaxTotal: n})
	e.seal(n)
	step := func(c uint32) {
		lo := c << 16
		e.round(1, lo+1, lo+1, codecs.Failed)
		e.round(1, lo+2, min(lo+65_535, n-1), codecs.OK) // the first of each stays open
		delete(e.cached, codecs.ChunkKey("b", "r", c))   // the test keeps no chunks
	}
	const chunks = (n + 65_535) >> 16
	for c := range uint32(chunks) {
		step(uint32(uint64(c) * 7919 % chunks))
	}
	b, err := e.header().AppendBinary(nil)
	require.NoError(t, err)
	require.LessOrEqual(t, len(b), e.m.MaxRowBytes())
	require.Equal(t, uint32(chunks), e.header().run.tally().Pending)
	t.Logf("header row of %d chunks: %d bytes", chunks, len(b))
}
