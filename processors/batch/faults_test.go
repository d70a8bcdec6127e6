package batch

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

func reportOf(run string, feeder, round uint32, items ...*codecs.ReportItem) *codecs.BatchReport {
	return &codecs.BatchReport{Run: run, Feeder: feeder, Round: round, Items: items}
}

// Reports of a feeder that START does not know are no tasks: they complete nothing.
func TestUnknownFeederBeforeStartCountsNothing(t *testing.T) {
	e := newEnv(t, mutants{})
	e.step(codecs.TypeBatchReport, reportOf("r", 5, 1, codecs.NewItem(0, 9, codecs.OK)))
	e.step(codecs.TypeBatchReport, reportOf("r", 6, 1, codecs.NewItem(3, 3, codecs.Outcome_unspecified)))
	e.start(&codecs.BatchStart{Policy: &codecs.Policy{Kind: "fail_fast"}})
	r := e.seal(10)
	require.Equal(t, codecs.State_sealed, r.run.State)
	require.Equal(t, uint32(10), r.run.tally().Pending)
	require.Equal(t, uint64(10), r.Audit.Unexpected)
	require.Equal(t, codecs.State_completed, e.round(1, 0, 9, codecs.OK).run.State)
}

// A queue releases one index space, one leg: what START says beyond that is refused.
func TestQueueHasOneFeederAndOneLeg(t *testing.T) {
	e := newEnv(t, mutants{})
	require.Nil(t, e.start(&codecs.BatchStart{Queue: "q", Feeders: 2}).run)
	require.Nil(t, e.start(&codecs.BatchStart{Queue: "q", Legs: []*codecs.Leg{{Stage: "a", Topic: "x"}, {Stage: "b", Topic: "y"}}}).run)
	require.NotNil(t, e.start(&codecs.BatchStart{Queue: "q", Feeders: 1}).run)
}

// The chunk in which the release of a later round stands comes along with events that name none of its tasks: it keeps
// its round, and the header keeps what it knows of it.
func TestReleaseChangesNoChunk(t *testing.T) {
	e := newEnv(t, mutants{})
	e.start(&codecs.BatchStart{Queue: "q", Window: 2})
	e.seal(131_072)
	e.round(1, 0, 65_533, codecs.OK)
	e.round(1, 65_534, 131_071, codecs.Failed)
	e.command("1", "redrive", nil)
	key := codecs.ChunkKey("b", "r", 1)
	r := e.round(2, 65_534, 65_535, codecs.OK)
	require.Equal(t, uint32(1), e.chunk(key).round)
	require.Equal(t, uint32(65_536), r.run.tally().Pending)
	require.Equal(t, uint32(4), r.run.Released)
	require.Equal(t, codecs.State_completed, e.round(2, 65_536, 131_071, codecs.OK).run.State)
}

// A deadline that a command set in the past is no reason to take back what was reported before it.
func TestReplayBehindADeadlineInThePast(t *testing.T) {
	for name, last := range map[string]func(e *env) *Row{
		"extend": func(e *env) *Row {
			return e.command("1", "extend", &codecs.CommandArgs{Deadlines: &codecs.Deadlines{CompleteBy: 5}})
		},
		"start": func(e *env) *Row {
			return e.start(&codecs.BatchStart{Run: "r", Deadlines: &codecs.Deadlines{CompleteBy: 5}})
		},
	} {
		e := newEnv(t, mutants{})
		if name == "extend" {
			e.start(&codecs.BatchStart{})
			e.round(1, 4, 4, codecs.OK)
			e.step(codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "r", Total: 5})
		}
		e.round(1, 0, 2, codecs.OK)
		last(e)
		key := codecs.ChunkKey("b", "r", 0)
		want := e.rows[key].bytes
		delete(e.rows, key) // the crash came before the chunk was written
		for _, rec := range e.history {
			e.feed(rec, func(codecs.Message) {})
		}
		require.Equal(t, want, e.rows[key].bytes, name)
	}
}

// Reports whose START never came are forgotten; the START that comes after that is refused, loudly.
func TestStartAfterItsReportsWereForgotten(t *testing.T) {
	e := newEnv(t, mutants{})
	e.round(1, 0, 0, codecs.OK)
	e.now += DefaultOrphanTTL
	r := e.nudge()
	require.Equal(t, codecs.State_collected, r.run.State)
	r = e.round(1, 1, 1, codecs.OK)
	require.Equal(t, uint64(1), r.Audit.Late)
	r = e.start(&codecs.BatchStart{})
	require.Equal(t, codecs.State_collected, r.run.State)
	require.Equal(t, codecs.TopicDeadLetter, e.sent[len(e.sent)-1].Topic)
	require.Equal(t, codecs.State_open, e.start(&codecs.BatchStart{Run: "s"}).run.State)
}

// A report that names no possible task makes an orphan like any other: it waits its time for START.
func TestOrphanOfNoTaskWaitsForItsStart(t *testing.T) {
	e := newEnv(t, mutants{})
	e.round(1, DefaultMaxTotal+500_000, DefaultMaxTotal+500_000, codecs.OK)
	e.start(&codecs.BatchStart{})
	e.seal(1)
	require.Equal(t, codecs.State_completed, e.round(1, 0, 0, codecs.OK).run.State)
}

// A parked run is forgotten by the very record that starts to park another one: that report is not lost.
func TestReportAtTheMomentOfForgetting(t *testing.T) {
	e := newEnv(t, mutants{})
	e.start(&codecs.BatchStart{})
	e.step(codecs.TypeBatchReport, reportOf("x", 0, 1, codecs.NewItem(0, 0, codecs.OK)))
	e.now += DefaultOrphanTTL
	e.step(codecs.TypeBatchReport, reportOf("y", 0, 1, codecs.NewItem(0, 0, codecs.OK)))
	e.command("1", "cancel", nil)
	e.start(&codecs.BatchStart{Run: "y"})
	r := e.step(codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "y", Total: 1})
	if r.run.State != codecs.State_completed { // or it was refused, and said so
		require.Equal(t, uint64(1), r.Audit.GetStale())
	}
	e = newEnv(t, mutants{})
	e.round(1, 0, 0, codecs.OK)
	e.now += DefaultOrphanTTL
	e.round(1, 1, 1, codecs.OK) // it lives
	e.start(&codecs.BatchStart{})
	require.Equal(t, codecs.State_completed, e.seal(2).run.State)
}

// A batch that was inconsistent before its seal goes on in the next round, and the seal trims as always.
func TestSealInALaterRound(t *testing.T) {
	e := newEnv(t, mutants{})
	e.start(&codecs.BatchStart{Deadlines: &codecs.Deadlines{SealWithin: 1000}})
	e.round(1, 8, 9, codecs.Failed)
	e.round(1, 0, 0, codecs.Failed)
	e.command("1", "inconsistent", &codecs.CommandArgs{Difference: "d"})
	e.now += 2000
	e.command("2", "inconsistent", nil)
	require.Equal(t, codecs.State_open, e.command("3", "reevaluate", nil).run.State)
	e.round(2, 8, 9, codecs.OK)
	r := e.seal(2)
	require.Equal(t, codecs.State_sealed, r.run.State, "8 and 9 are no tasks")
	require.Equal(t, uint32(2), r.run.tally().Pending)
	require.Equal(t, codecs.State_completed, e.round(2, 0, 1, codecs.OK).run.State)
}

// What is over is collected, however quickly run follows run; the chunks of a run that lives are not.
func TestGarbageOfEveryRun(t *testing.T) {
	e := newEnv(t, mutants{})
	life := func(run string) *Row {
		e.start(&codecs.BatchStart{Run: run, ReuseOpen: "supersede"})
		return e.step(codecs.TypeBatchReport, reportOf(run, 0, 1, codecs.NewItem(0, 0, codecs.OK)))
	}
	life("r")
	life("s")
	keys, _ := e.m.Collect(life("t"))
	require.Equal(t, []string{codecs.ChunkKey("b", "r", 0), codecs.ChunkKey("b", "s", 0)}, keys)
	for i := range maxPast {
		life("u" + string(rune('a'+i)))
	}
	keys, _ = e.m.Collect(life("r")) // so old that its name is free again
	require.NotContains(t, keys, codecs.ChunkKey("b", "r", 0))
}

// Keys of garbage stay a small part of the row, whatever their length.
func TestGarbageFitsTheRow(t *testing.T) {
	e := newEnv(t, mutants{})
	e.cached = map[string]codecs.Row{}
	e.batch = strings.Repeat("b", 128)
	run := strings.Repeat("r", 127)
	for i := range 3 {
		name := run + string(rune('0'+i))
		e.start(&codecs.BatchStart{Run: name, ReuseOpen: "supersede", MaxTotal: 1 << 31})
		for c := uint32(0); c < 3000; c++ {
			e.step(codecs.TypeBatchReport, reportOf(name, 0, 1, codecs.NewItem(c<<16, c<<16, codecs.OK)))
		}
	}
	b, err := e.header().AppendBinary(nil)
	require.NoError(t, err)
	require.LessOrEqual(t, len(b), e.m.MaxRowBytes())
}

// A job that awaits a batch that has not started is remembered.
func TestWatchersKeepTheRow(t *testing.T) {
	e := newEnv(t, mutants{})
	_, self := e.m.Collect(e.command("1", "watch", &codecs.CommandArgs{Watcher: "j"}))
	require.False(t, self)
	e.start(&codecs.BatchStart{Run: "r"})
	e.seal(0)
	ended := func() (out []*codecs.BatchEnded) {
		for _, m := range e.sent {
			if d, ok := m.Data.(*codecs.BatchEnded); ok {
				out = append(out, d)
			}
		}
		return out
	}
	require.Len(t, ended(), 1)
	e.command("2", "gc", nil)
	e.command("3", "watch", &codecs.CommandArgs{Watcher: "k"})
	require.Equal(t, codecs.State_completed, ended()[1].State, "how it ended, not that it is collected")
}

// What a cut tells of tasks names their run and round, whatever followed before the cut.
func TestCutNamesTheRunOfItsTasks(t *testing.T) {
	e := newEnv(t, mutants{})
	r := e.m.NewRow("b").(*Row)
	c := map[string]*Chunk{}
	var out []codecs.Message
	step := func(typ string, data proto.Message) {
		rec := e.record(typ, data)
		var ev codecs.Event
		require.NoError(t, e.m.Decode(&rec, &ev))
		var parts []codecs.Row
		for _, k := range e.m.Parts(r, rec.Offset, &ev) {
			if c[k] == nil {
				c[k] = e.m.NewPart(k).(*Chunk)
			}
			e.m.StepPart(c[k], rec.Offset, &ev)
			parts = append(parts, c[k])
		}
		out = e.m.Step(r, parts, rec.Offset, &ev, out)
	}
	step(codecs.TypeBatchStart, &codecs.BatchStart{Run: "r"})
	step(codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "r", Total: 2})
	step(codecs.TypeBatchReport, reportOf("r", 0, 1, codecs.NewItem(0, 1, codecs.Failed)))
	step(codecs.TypeBatchCommand, &codecs.BatchCommand{Id: "1", Verb: "redrive"})
	step(codecs.TypeBatchReport, reportOf("r", 0, 2, codecs.NewItem(0, 1, codecs.OK)))
	step(codecs.TypeBatchStart, &codecs.BatchStart{Run: "s"})
	step(codecs.TypeBatchReport, reportOf("s", 0, 1, codecs.NewItem(7, 7, codecs.OK)))
	out = e.m.Cut(r, out)
	var got []string
	for _, m := range out {
		if d, ok := m.Data.(*codecs.SubjobsCompleted); ok {
			require.Len(t, d.Items, 1)
			got = append(got, d.Run+string(rune('0'+d.Round))+d.Items[0].Outcome.String())
		}
	}
	require.Equal(t, []string{"r1failed", "r2ok", "s1ok"}, got)
}

// Outcome unknown, said or derived, is counted once in mode markers.
func TestMarkersAndUnknown(t *testing.T) {
	e := newEnv(t, mutants{})
	e.start(&codecs.BatchStart{Mode: "markers", Units: []*codecs.UnitSet{{Stage: "a", Topic: "x", Partitions: 1}}})
	e.seal(3)
	e.round(1, 0, 0, codecs.Unknown)
	r := e.step(codecs.TypeBatchEnd, &codecs.BatchEnd{Run: "r", Unit: &codecs.Unit{Stage: "a", Topic: "x"}})
	require.Equal(t, codecs.State_completed, r.run.State)
	require.Equal(t, uint32(3), r.run.tally().Unknown)
}

// The same index of two feeders is two tasks, in what statistics count too.
func TestCutCountsTasksOfEveryFeeder(t *testing.T) {
	e := newEnv(t, mutants{})
	e.cached = map[string]codecs.Row{}
	e.start(&codecs.BatchStart{Feeders: 2})
	h := e.header()
	for f := range uint32(2) {
		h.collectFresh(f, codecs.OK, 4, 6)
	}
	n := uint64(0)
	for _, m := range e.m.Cut(h, nil) {
		for _, it := range m.Data.(*codecs.SubjobsCompleted).Items {
			k, _, err := codecs.ItemSize(it)
			require.NoError(t, err)
			n += k
		}
	}
	require.Equal(t, uint64(6), n)
}

// A seal that the header refuses trims no chunk.
func TestRefusedSealTrimsNothing(t *testing.T) {
	e := newEnv(t, mutants{})
	const most = 1<<32 - 1
	e.start(&codecs.BatchStart{Feeders: 2, MaxTotal: most})
	e.seal(most - 5)
	e.step(codecs.TypeBatchReport, reportOf("r", 1, 1, codecs.NewItem(7, 7, codecs.OK)))
	e.step(codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "r", Feeder: 1, Total: 6})
	require.Equal(t, uint32(1), e.chunk(codecs.ChunkKey("b", "r", 1<<16)).n[codecs.OK])
}

// With several legs, each of them makes progress: a batch whose first stage works is not idle.
func TestEveryLegIsProgress(t *testing.T) {
	e := newEnv(t, mutants{})
	e.start(&codecs.BatchStart{Legs: []*codecs.Leg{{Stage: "a", Topic: "x"}, {Stage: "b", Topic: "y"}}, Deadlines: &codecs.Deadlines{NoProgressFor: 1000}})
	e.seal(3)
	for i := range uint32(3) {
		e.now += 900
		e.step(codecs.TypeBatchReport, &codecs.BatchReport{Run: "r", Legs: 2, Items: []*codecs.ReportItem{codecs.NewItem(i, i, codecs.OK)}})
	}
	require.Equal(t, codecs.State_sealed, e.header().run.State)
	e.now += 1000
	require.Equal(t, codecs.State_expired, e.nudge().run.State)
}

// A task that was started in a round that ended is pending in the next, and may start again.
func TestStartedTasksStartAgain(t *testing.T) {
	e := newEnv(t, mutants{})
	e.start(&codecs.BatchStart{})
	e.seal(3)
	e.round(1, 0, 1, codecs.Outcome_unspecified)
	e.command("1", "cancel", nil)
	require.Equal(t, uint32(0), e.command("2", "redrive", nil).run.tally().Running)
	require.Equal(t, uint32(1), e.round(2, 0, 0, codecs.Outcome_unspecified).run.tally().Running)
}

// Every round releases what is open from the first task on, and has its whole time without progress.
func TestRoundsBeginAnew(t *testing.T) {
	e := newEnv(t, mutants{})
	e.start(&codecs.BatchStart{Queue: "q", Deadlines: &codecs.Deadlines{NoProgressFor: 1000}})
	e.seal(4)
	e.round(1, 0, 3, codecs.Failed)
	for round := uint32(2); round < 5; round++ {
		e.now += 5000
		e.command(string(rune('0'+round)), "redrive", nil)
		last := e.orders[len(e.orders)-1]
		require.Equal(t, []uint32{0, 4, round}, []uint32{last.Lo, last.Hi, last.Round})
		e.now += 999
		require.Equal(t, codecs.State_completed_with_failures, e.round(round, 0, 3, codecs.Lost).run.State)
	}
}

// Tasks of a run that waits for its START are not told under the run that is current.
func TestCutIsSilentOfParkedRuns(t *testing.T) {
	e := newEnv(t, mutants{})
	e.start(&codecs.BatchStart{})
	e.step(codecs.TypeBatchReport, reportOf("s", 0, 1, codecs.NewItem(0, 5, codecs.OK)))
	for _, m := range e.sent {
		require.NotEqual(t, codecs.TypeSubjobsCompleted, m.Type)
	}
}
