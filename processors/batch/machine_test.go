package batch

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
)

func TestSizesAroundAChunk(t *testing.T) {
	for _, n := range []uint32{0, 1, 65_535, 65_536, 65_537, 1_000_000} {
		l := newEnv(t, mutants{})
		l.start(&codecs.BatchStart{})
		r := l.seal(n)
		if n > 0 {
			require.Equal(t, codecs.State_sealed, r.run.State)
			if n > 1 {
				require.Equal(t, codecs.State_sealed, l.report(codecs.NewItem(0, n-2, codecs.OK)).run.State)
			}
			r = l.report(codecs.NewItem(n-1, n-1, codecs.OK))
		}
		require.Equal(t, codecs.State_completed, r.run.State, "%d", n)
		require.Equal(t, []string{"b/r/1/terminal"}, l.ends)
	}
}

// any order, any repetition, any cutting of the same outcomes gives the same end, once.
func TestOrderAndRepetitionChangeNothing(t *testing.T) {
	const n = 200
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		l := newEnv(t, mutants{})
		steps := []func(){func() { l.start(&codecs.BatchStart{}) }, func() { l.seal(n) }}
		for i := uint32(0); i < n; i++ {
			o := codecs.OK
			if i%10 == 3 {
				o = codecs.Failed
			}
			for range 1 + rng.IntN(2) {
				steps = append(steps, func() { l.report(codecs.NewItem(i, i, o)) })
			}
		}
		steps = append(steps, func() { l.report(codecs.NewItem(n, n+50, codecs.OK)) })
		head := rng.IntN(len(steps)) // START comes somewhere, the seal after it
		rng.Shuffle(len(steps)-2, func(i, j int) { steps[i+2], steps[j+2] = steps[j+2], steps[i+2] })
		order := append([]func(){}, steps[2:2+min(head, len(steps)-2)]...)
		order = append(order, steps[0], steps[1])
		order = append(order, steps[2+min(head, len(steps)-2):]...)
		for _, f := range order {
			f()
		}
		r := l.nudge()
		require.Equal(t, codecs.State_completed_with_failures, r.run.State, "seed %d", seed)
		require.Equal(t, []string{"b/r/1/terminal"}, l.ends)
		c := r.run.tally()
		require.Equal(t, []uint32{n, n - 20, 20}, []uint32{c.Total, c.Ok, c.Failed})
	}
}

func TestRedriveTwice(t *testing.T) {
	l := newEnv(t, mutants{})
	l.start(&codecs.BatchStart{})
	l.seal(100_000)
	l.report(codecs.NewItem(0, 99_989, codecs.OK))
	r := l.report(codecs.NewItem(99_990, 99_999, codecs.Failed))
	require.Equal(t, codecs.State_completed_with_failures, r.run.State)
	r = l.command("1", "redrive", nil)
	require.Equal(t, codecs.State_sealed, r.run.State)
	require.Equal(t, uint32(10), r.run.tally().Pending)
	r = l.report(codecs.NewItem(99_990, 99_999, codecs.OK)) // of round 1: late, even if it says ok
	require.Equal(t, uint64(10), r.Audit.Late)
	require.Equal(t, uint32(10), r.run.tally().Pending)
	l.round(2, 99_990, 99_994, codecs.OK)
	l.round(2, 99_995, 99_999, codecs.Failed)
	l.command("2", "redrive", nil)
	r = l.round(3, 99_995, 99_999, codecs.OK)
	require.Equal(t, codecs.State_completed, r.run.State)
	require.Equal(t, []string{"b/r/1/terminal", "b/r/2/terminal", "b/r/3/terminal"}, l.ends)
}

func TestMarkersNeedEveryUnit(t *testing.T) {
	l := newEnv(t, mutants{})
	l.start(&codecs.BatchStart{Mode: "markers", Units: []*codecs.UnitSet{{Stage: "a", Topic: "x", Partitions: 3}, {Stage: "b", Topic: "y", Partitions: 2}}})
	end := func(stage, topic string, p uint32) *Row {
		return l.step(codecs.TypeBatchEnd, &codecs.BatchEnd{Run: "r", Unit: &codecs.Unit{Stage: stage, Topic: topic, Partition: p}, Consumed: 9, Failed: 7})
	}
	l.seal(10)
	l.report(codecs.NewItem(4, 4, codecs.Failed), codecs.NewItem(4, 4, codecs.Failed))
	for p := range uint32(3) {
		end("a", "x", p)
	}
	end("b", "y", 0)
	end("b", "y", 0) // again
	end("b", "y", 9) // does not exist
	require.Empty(t, l.ends)
	r := end("b", "y", 1)
	require.Equal(t, codecs.State_completed_with_failures, r.run.State)
	require.Equal(t, uint32(1), r.run.tally().Failed, "counted by task, not by execution")
	require.Equal(t, uint32(9), r.run.tally().Unknown)
}

func TestTaskEndsWithItsLastLegAndTheWorstOutcome(t *testing.T) {
	l := newEnv(t, mutants{})
	l.start(&codecs.BatchStart{Legs: []*codecs.Leg{{Stage: "a", Topic: "x"}, {Stage: "b", Topic: "y"}}})
	l.seal(2)
	on := func(leg, i uint32, o codecs.Outcome_Code) *Row {
		return l.step(codecs.TypeBatchReport, &codecs.BatchReport{Run: "r", Legs: 2, Items: []*codecs.ReportItem{{First: i, Leg: leg, Outcome: o}}})
	}
	on(0, 0, codecs.OK)
	on(0, 1, codecs.OK)
	on(1, 0, codecs.Failed)
	require.Empty(t, l.ends, "one leg of task 1 is open")
	r := on(1, 1, codecs.Skipped)
	require.Equal(t, codecs.State_completed_with_failures, r.run.State)
	c := r.run.tally()
	require.Equal(t, []uint32{0, 1, 1}, []uint32{c.Ok, c.Failed, c.Skipped})
}

func TestPolicies(t *testing.T) {
	for _, c := range []struct {
		policy *codecs.Policy
		failed uint32 // of 1,000
		want   codecs.State_Code
	}{
		{nil, 1000, codecs.State_completed_with_failures},
		{&codecs.Policy{Kind: "fail_fast"}, 1, codecs.State_failed},
		{&codecs.Policy{Kind: "tolerate", Tolerate: "5"}, 5, codecs.State_completed_with_failures},
		{&codecs.Policy{Kind: "tolerate", Tolerate: "5"}, 6, codecs.State_failed},
		{&codecs.Policy{Kind: "tolerate", Tolerate: "1%", MinSample: 100}, 10, codecs.State_completed_with_failures},
		{&codecs.Policy{Kind: "tolerate", Tolerate: "1%", MinSample: 100}, 11, codecs.State_failed},
	} {
		l := newEnv(t, mutants{})
		l.start(&codecs.BatchStart{Policy: c.policy})
		l.seal(1000)
		if c.failed < 1000 {
			l.report(codecs.NewItem(c.failed, 999, codecs.OK))
		}
		r := l.report(codecs.NewItem(0, c.failed-1, codecs.Failed))
		require.Equal(t, c.want, r.run.State, "%v with %d failures: %s", c.policy, c.failed, r)
		require.Len(t, l.ends, 1)
	}
}

func TestReuseOfAnID(t *testing.T) {
	l := newEnv(t, mutants{})
	l.start(&codecs.BatchStart{})
	require.Equal(t, "r", l.start(&codecs.BatchStart{Run: "s"}).run.Run, "open: rejected")
	r := l.start(&codecs.BatchStart{Run: "s", ReuseOpen: "supersede"})
	require.Equal(t, "s", r.run.Run)
	require.Equal(t, []string{"b/r/1/terminal"}, l.ends)
	r = l.report(codecs.NewItem(0, 3, codecs.OK))
	require.Equal(t, uint64(4), r.Audit.Stale, "of the older run")
	r = l.start(&codecs.BatchStart{Run: "r"})
	require.Equal(t, "s", r.run.Run)
}

func TestDeadlinesAreJudgedByAppendTime(t *testing.T) {
	l := newEnv(t, mutants{})
	r := l.start(&codecs.BatchStart{Deadlines: &codecs.Deadlines{CompleteWithin: 1000}})
	require.Equal(t, l.now+1000, l.m.Deadline(r))
	l.now += 999
	require.Empty(t, func() []string { l.nudge(); return l.ends }())
	l.now++
	r = l.nudge()
	require.Equal(t, codecs.State_expired, r.run.State)
	l.now = l.m.Deadline(r)
	r = l.nudge()
	require.Equal(t, codecs.State_collected, r.run.State)
	_, gone := l.m.Collect(r)
	require.False(t, gone, "a marker stands")
	l.now = l.m.Deadline(r)
	_, gone = l.m.Collect(l.nudge())
	require.True(t, gone)
}

func TestCommandsActOnce(t *testing.T) {
	l := newEnv(t, mutants{})
	l.start(&codecs.BatchStart{})
	l.command("p", "pause", nil)
	l.seal(1)
	l.report(codecs.NewItem(0, 0, codecs.OK))
	require.Empty(t, l.ends)
	r := l.command("p", "resume", nil) // the same id: no second command
	require.True(t, r.run.Paused)
	r = l.command("q", "resume", nil)
	require.Equal(t, codecs.State_completed, r.run.State)
	r = l.command("c", "cancel", nil)
	last := r.Answers[len(r.Answers)-1]
	require.False(t, last.Applied)
	require.Equal(t, "the batch has ended: completed", last.Reason)
	require.Len(t, l.ends, 1)
}

func TestWindowReleasesWhatHasRoom(t *testing.T) {
	l := newEnv(t, mutants{})
	l.start(&codecs.BatchStart{Queue: "q", Window: 3, Owner: &codecs.Owner{Job: "j", Step: "s"}})
	var chunks []*codecs.ChunkPosition
	for i := range uint32(5) {
		chunks = append(chunks, &codecs.ChunkPosition{First: 2 * i})
	}
	l.step(codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "r", Total: 10, Chunks: chunks})
	for i := uint32(0); i < 10; i++ {
		l.report(codecs.NewItem(i, i, codecs.OK))
	}
	var got []string
	for _, d := range l.orders {
		got = append(got, fmt.Sprintf("%d-%d:%d", d.Lo, d.Hi, len(d.Chunks)))
	}
	require.Equal(t, "0-3:2 3-4:1 4-5:1 5-6:1 6-7:1 7-8:1 8-9:1 9-10:1", strings.Join(got, " "))
	jobs := 0
	for _, m := range l.sent {
		if m.Topic == codecs.TopicJobs {
			jobs++
		}
	}
	require.Equal(t, 1, jobs, "its job is told once")
}
