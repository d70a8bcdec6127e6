package job_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/job"
)

// The end of a step passes on what the worker measured; no other event does.
func TestStepCompletedCarriesTiming(t *testing.T) {
	e := newEnv(t, job.Config{})
	def := &codecs.JobType{Name: "t", Version: 1, Steps: []*codecs.StepSpec{
		{Name: "a", Task: &codecs.TaskSpec{Queue: "q"}}, {Name: "b", After: []string{"a"}, Task: &codecs.TaskSpec{Queue: "q"}}}}
	e.send(t, "j", "1", codecs.TypeJobRequested, &codecs.JobRequested{Type: "t", Definition: def})
	out := e.send(t, "j", "2", codecs.TypeTaskCompleted, &codecs.TaskCompleted{Step: "a", Outcome: codecs.OK, Attempt: 2,
		Timing: &codecs.Timing{Run: []byte("run")}})
	seen := map[string]string{}
	for _, m := range out {
		if d, ok := m.Data.(*codecs.JobEvent); ok {
			seen[m.Type] = string(d.Timing.GetRun())
		}
	}
	require.Equal(t, map[string]string{codecs.TypeStepCompleted: "run", codecs.TypeStepStarted: ""}, seen)
}
