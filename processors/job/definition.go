package job

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/quiesce/quiesce/codecs"
)

// validType checks a definition and reports all faults at once.
func validType(t *codecs.JobType) error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if err := codecs.ValidID("job type", t.GetName()); err != nil {
		faults = append(faults, err)
	}
	if len(t.GetSteps()) == 0 || len(t.GetSteps()) > maxSteps {
		fault("/steps: %d, must be 1 to %d", len(t.GetSteps()), maxSteps)
	}
	at := map[string]int{}
	for i, st := range t.GetSteps() {
		if codecs.ValidID("step", st.Name) != nil || len(st.Name) > 48 {
			fault("/steps/%d: name %q: an id of at most 48 characters", i, st.Name)
		}
		if _, ok := at[st.Name]; ok {
			fault("/steps/%s: twice", st.Name)
		}
		at[st.Name] = i
		if err := validStep(st); err != nil {
			fault("/steps/%s: %w", st.Name, err)
		}
	}
	for _, st := range t.GetSteps() {
		for _, a := range st.After {
			if _, ok := at[a]; !ok {
				fault("/steps/%s/after: no step %q", st.Name, a)
			}
		}
	}
	if len(faults) == 0 && !acyclic(t, at) {
		fault("/steps: the steps wait for each other in a circle")
	}
	return errors.Join(faults...)
}

func validStep(st *codecs.StepSpec) error {
	switch {
	case (st.Task == nil) == (st.FanOut == nil):
		return errors.New("one of task and fan_out")
	case st.Task != nil:
		return codecs.ValidID("queue", st.Task.Queue)
	}
	f := st.FanOut
	if err := codecs.ValidID("queue", f.Split); err != nil {
		return fmt.Errorf("split: %w", err)
	}
	if err := codecs.ValidID("queue", f.Queue); err != nil {
		return err
	}
	if f.OnDeadline != "" && f.OnDeadline != "expire" && f.OnDeadline != "close" {
		return fmt.Errorf("on_deadline %q: expire or close", f.OnDeadline)
	}
	return validPolicy(f.Policy)
}

// knownQueues refuses a queue that does not exist: a task for it could be sent to nobody, and would hold up every other
// job of its partition.
func (m *Machine) knownQueues(t *codecs.JobType) error {
	for _, st := range t.Steps {
		for _, q := range []string{st.Task.GetQueue(), st.FanOut.GetSplit(), st.FanOut.GetQueue()} {
			if q != "" && m.queues != nil && !m.queues[q] {
				return fmt.Errorf("/steps/%s: no queue %q in this deployment", st.Name, q)
			}
		}
	}
	return nil
}

// validPolicy checks a failure policy's words; the controller judges by it.
func validPolicy(p *codecs.Policy) error {
	switch p.GetKind() {
	case "", "continue", "fail_fast":
		return nil
	case "tolerate":
		n, percent := strings.CutSuffix(p.Tolerate, "%")
		v, err := strconv.ParseFloat(n, 64)
		if err != nil || v < 0 || percent && v > 100 || !percent && v != float64(uint32(v)) {
			return fmt.Errorf("policy: tolerate %q: a number of failures or a percentage", p.Tolerate)
		}
		return nil
	}
	return fmt.Errorf("policy %q: continue, fail_fast or tolerate", p.Kind)
}

// acyclic removes steps without open predecessors until none is left (Kahn, 1962).
func acyclic(t *codecs.JobType, at map[string]int) bool {
	done := make([]bool, len(t.Steps))
	for left := len(t.Steps); left > 0; {
		before := left
		for i, st := range t.Steps {
			ready := !done[i]
			for _, a := range st.After {
				ready = ready && done[at[a]]
			}
			if ready {
				done[i] = true
				left--
			}
		}
		if left == before {
			return false
		}
	}
	return true
}

// indexOf returns the index of a step by name, -1 = none.
func indexOf(r *codecs.JobRow, name string) int {
	for i, st := range r.Definition.Steps {
		if st.Name == name {
			return i
		}
	}
	return -1
}
