package job_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/job"
)

var diamond = &codecs.JobType{Name: "diamond", Version: 1, CompleteBy: 5000, Steps: []*codecs.StepSpec{
	{Name: "a", Task: &codecs.TaskSpec{Queue: "q"}},
	{Name: "b", After: []string{"a"}, FanOut: &codecs.FanOutSpec{Split: "s", Queue: "q", CompleteBy: 900}},
	{Name: "c", After: []string{"a"}, Task: &codecs.TaskSpec{Queue: "q"}},
	{Name: "d", After: []string{"b", "c"}, Task: &codecs.TaskSpec{Queue: "q"}},
}}

// randomEvent draws any event that may reach a job's row, sensible or not.
func randomEvent(t *rapid.T) (string, proto.Message) {
	step := rapid.SampledFrom([]string{"a", "b", "c", "d", "x"}).Draw(t, "step")
	round := rapid.Uint32Range(0, 3).Draw(t, "round")
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		o := rapid.SampledFrom([]codecs.Outcome_Code{codecs.OK, codecs.OK, codecs.OK, codecs.Failed, codecs.Lost}).Draw(t, "outcome")
		return codecs.TypeTaskCompleted, &codecs.TaskCompleted{Step: step, Round: round, Outcome: o}
	case 1:
		n := rapid.Uint32Range(0, 2).Draw(t, "n")
		p := &codecs.SplitProposed{Step: "b", Round: round, Total: n, Proposal: rapid.SampledFrom([]string{"p1", "p2"}).Draw(t, "proposal")}
		for k := range n {
			p.Chunks = append(p.Chunks, &codecs.ChunkPosition{First: k})
		}
		return codecs.TypeSplitProposed, p
	case 2:
		st := rapid.SampledFrom([]codecs.State_Code{codecs.State_completed, codecs.State_completed_with_failures,
			codecs.State_failed, codecs.State_cancelled, codecs.State_expired}).Draw(t, "state")
		run := rapid.SampledFrom([]string{"r0.1", "r0.1-2", "other"}).Draw(t, "run")
		return codecs.TypeBatchEnded, &codecs.BatchEnded{Batch: "j.b", Run: run, Round: max(round, 1), State: st, Counts: &codecs.Counts{Total: 1}}
	case 3:
		verb := rapid.SampledFrom([]string{"cancel", "pause", "resume", "redrive", "redrive", "nonsense"}).Draw(t, "verb")
		return codecs.TypeJobCommand, &codecs.JobCommand{Id: fmt.Sprint(rapid.IntRange(0, 40).Draw(t, "id")), Verb: verb}
	case 4:
		return codecs.TypeJobNudge, &codecs.JobNudge{}
	}
	return codecs.TypeJobRequested, &codecs.JobRequested{Type: "diamond"}
}

func isTerminal(m codecs.Message) bool { return strings.HasSuffix(m.ID, "/terminal") }

// TestEndsOnce checks, over random events with duplicates: one terminal event per round; an ended job changes only by
// redrive and collection; a step never starts before its predecessors are done; rows stay bounded.
func TestEndsOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e := newEnv(t, job.Config{Types: []*codecs.JobType{diamond}})
		e.send(t, "j", "req", codecs.TypeJobRequested, &codecs.JobRequested{Type: "diamond"})
		terminal := map[string]int{}
		for range rapid.IntRange(1, 60).Draw(rt, "events") {
			e.now += rapid.Int64Range(0, 400).Draw(rt, "dt")
			typ, data := randomEvent(rt)
			before := e.row(t, "j").Job
			out := e.send(t, "j", "", typ, data)
			after := e.row(t, "j").Job
			for _, m := range out {
				if isTerminal(m) {
					terminal[m.ID]++
				}
			}
			if before.State >= codecs.JobState_completed && after.State != before.State {
				c, isCommand := data.(*codecs.JobCommand)
				if !(isCommand && c.Verb == "redrive") {
					require.Equal(t, codecs.JobState_collected, after.State)
				}
			}
			done := func(i int) bool {
				s := after.Steps[i].State
				return s == codecs.StepState_completed || s == codecs.StepState_completed_with_failures
			}
			if s := after.Steps[3].State; s == codecs.StepState_running && after.State == codecs.JobState_running {
				require.True(t, done(1) && done(2), "d runs before b and c are done: %s", e.row(t, "j"))
			}
			if after.State == codecs.JobState_completed {
				for i := range after.Steps {
					require.Equal(t, codecs.StepState_completed, after.Steps[i].State, "%s", e.row(t, "j"))
				}
			}
		}
		for id, n := range terminal {
			require.Equal(t, 1, n, id)
		}
	})
}

// TestHappyEnd drives what the machine asks for until it asks for nothing more: whatever was lost or failed before, a
// redriven job whose workers answer ends completed.
func TestHappyEnd(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e := newEnv(t, job.Config{Types: []*codecs.JobType{{Name: "diamond", Version: 1, Steps: diamondWithoutDeadlines()}}})
		e.send(t, "j", "req", codecs.TypeJobRequested, &codecs.JobRequested{Type: "diamond"})
		w := &workers{batches: map[string]uint32{}}
		for k := range rapid.IntRange(0, 30).Draw(rt, "events") {
			if rapid.Bool().Draw(rt, "answer") {
				w.answer(t, e, rapid.SampledFrom([]bool{true, true, false}).Draw(rt, "ok"))
				continue
			}
			verb := rapid.SampledFrom([]string{"cancel", "pause", "resume", "redrive"}).Draw(rt, "verb")
			e.send(t, "j", "", codecs.TypeJobCommand, &codecs.JobCommand{Id: fmt.Sprint("r", k), Verb: verb})
		}
		for k := 0; k < 40; k++ {
			e.send(t, "j", "", codecs.TypeJobCommand, &codecs.JobCommand{Id: fmt.Sprint("u", k), Verb: "resume"})
			e.send(t, "j", "", codecs.TypeJobCommand, &codecs.JobCommand{Id: fmt.Sprint("v", k), Verb: "redrive"})
			for w.answer(t, e, true) {
			}
		}
		require.Equal(t, codecs.JobState_completed, e.row(t, "j").Job.State, "%s", e.row(t, "j"))
	})
}

func diamondWithoutDeadlines() []*codecs.StepSpec {
	d := proto.Clone(diamond).(*codecs.JobType)
	d.Steps[1].FanOut.CompleteBy = 0
	return d.Steps
}

// workers is the rest of the world: it answers tasks, splits and batches in the order they were sent.
type workers struct {
	next    int
	batches map[string]uint32 // batch/run -> round that is open; an ended one that completed is 0
}

// answer takes the next message of the machine that wants one; false = there is none.
func (w *workers) answer(t *testing.T, e *env, ok bool) bool {
	for w.next < len(e.sent) {
		m := e.sent[w.next]
		w.next++
		switch d := m.Data.(type) {
		case *codecs.Task:
			switch {
			case !ok:
				e.send(t, "j", "", codecs.TypeTaskCompleted, &codecs.TaskCompleted{Step: d.Step, Round: d.Round, Outcome: codecs.Failed})
			case d.Kind == job.KindSplit:
				e.send(t, "j", "", codecs.TypeSplitProposed, &codecs.SplitProposed{Step: d.Step, Round: d.Round, Proposal: fmt.Sprint("p", w.next),
					Total: 1, Chunks: []*codecs.ChunkPosition{{}}})
			default:
				e.send(t, "j", "", codecs.TypeTaskCompleted, &codecs.TaskCompleted{Step: d.Step, Round: d.Round, Outcome: codecs.OK})
			}
			return true
		case *codecs.BatchSeal:
			w.endBatch(t, e, m.Key, d.Run, 1, ok)
			return true
		case *codecs.BatchCommand:
			round, open := w.batches[d.Args.Run]
			if d.Verb == "redrive" && open && round > 0 { // a completed batch refuses
				w.endBatch(t, e, m.Key, d.Args.Run, round+1, ok)
				return true
			}
		}
	}
	return false
}

func (w *workers) endBatch(t *testing.T, e *env, batch, run string, round uint32, ok bool) {
	state := codecs.State_completed
	w.batches[run] = 0
	if !ok {
		state = codecs.State_failed
		w.batches[run] = round
	}
	e.send(t, "j", "", codecs.TypeBatchEnded, &codecs.BatchEnded{Batch: batch, Run: run, Round: round, State: state, Counts: &codecs.Counts{Total: 1}})
}
