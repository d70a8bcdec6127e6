package topology

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"pgregory.net/rapid"
)

func sampleJob(t testing.TB, name string) *JobType {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../testdata/jobs", name+".yaml"))
	require.NoError(t, err)
	j, err := LoadJobType(b)
	require.NoError(t, err)
	return j
}

// invoices is invoices.yaml as a Go value.
func invoices() *JobType {
	return &JobType{Name: "invoices", Version: 1, Steps: map[string]Step{
		"s1": {Task: &Task{Queue: "invoices.prepare"}},
		"s2": {After: []string{"s1"}, FanOut: &FanOut{Split: "invoices.split", Queue: "invoices.render", Window: 64,
			Retry:          &Retry{Attempts: 5, First: time.Second, Factor: 4, Max: 5 * time.Minute},
			AttemptTimeout: 2 * time.Minute, Policy: &Policy{Tolerate: "1%", MinSample: 100},
			CompleteBy: time.Hour, OnDeadline: "close"}},
		"s3": {After: []string{"s2"}, Task: &Task{Queue: "invoices.report"}},
	}}
}

func TestJobTypeLoadEqualsGoValue(t *testing.T) {
	require.Equal(t, invoices(), sampleJob(t, "invoices"))
}

func TestJobTypeDefaults(t *testing.T) {
	j := JobType{Name: "j", Version: 1, Steps: map[string]Step{
		"a": {Task: &Task{Queue: "q"}},
		"b": {After: []string{"a"}, FanOut: &FanOut{Split: "s", Queue: "q", Policy: &Policy{Tolerate: "3"}}},
		"c": {FanOut: &FanOut{Split: "s", Queue: "q", Retry: &Retry{Attempts: 1}}},
	}}
	d := j.WithDefaults()
	require.Equal(t, d, d.WithDefaults())
	require.Equal(t, &Retry{Attempts: 5, First: time.Second, Factor: 4, Max: 5 * time.Minute}, d.Steps["a"].Task.Retry)
	b := d.Steps["b"].FanOut
	require.EqualValues(t, 1000, b.Window)
	require.EqualValues(t, 10_000_000, b.MaxTotal)
	require.Equal(t, "expire", b.OnDeadline)
	require.Equal(t, &Policy{Kind: "tolerate", Tolerate: "3"}, b.Policy)
	require.Equal(t, "continue", d.Steps["c"].FanOut.Policy.Kind)
	require.EqualValues(t, 1, d.Steps["c"].FanOut.Retry.Attempts)
	require.Nil(t, j.Steps["a"].Task.Retry, "the declaration itself is not changed")
	require.Empty(t, j.Steps["b"].FanOut.Policy.Kind)
	require.Equal(t, j.Digest(), d.Digest(), "a default said aloud means the same")
}

func TestJobTypeFaultsAllAtOnce(t *testing.T) {
	_, err := LoadJobType([]byte(`job: a b
version: 0
stepps: {}
steps:
  "x/y": {task: {queue: q}}
  none: {after: [nobody]}
  both: {task: {queue: q}, fan_out: {split: s, queue: q}}
  one: {after: [two], task: {queue: q}}
  two: {after: [one, one], task: {queue: notify}}
  three:
    after: [two]
    task: {queue: "q@home", attempt_timeout: soon}
  four:
    fan_out:
      split: s.retry-1s
      queue: q
      retry: {attempts: 101, first: 10m, factor: 0.5}
      policy: {tolerate: 101%}
      complete_by: 1m
      attempt_timeout: 2m
  five: {fan_out: {split: s, queue: q, on_deadline: close, policy: {tolerate: 5, min_sample: 10}}}
  six: {fan_out: {split: s, queue: q, on_deadline: panic, complete_by: 1m, policy: {kind: fail_fast, tolerate: 5}}}
  seven: {fan_out: {split: s, queue: q, policy: {kind: sometimes}, no_progress_for: 1ns}}
  eight: {fan_out: {split: s, queue: q, policy: {min_sample: 3}}}
`))
	require.Equal(t, strings.TrimSpace(`
line 1: job: job type id "a b": 1 to 128 of A-Z a-z 0-9 . _ @ = + -, starting with a letter or digit
line 2: version: missing: a whole number from 1
line 3: stepps: unknown key; known are job, version, complete_by, retention, steps
line 5: steps.x/y: step id "x/y": 1 to 128 of A-Z a-z 0-9 . _ @ = + -, starting with a letter or digit
line 6: steps.none.after[0]: there is no step "nobody"
line 6: steps.none: a step is either a task or a fan_out
line 7: steps.both: a step is either a task or a fan_out
line 8: steps.one.after: the step waits for itself
line 9: steps.two.after[1]: step "one" is there twice
line 9: steps.two.task.queue: queue "notify" is the deployment's own
line 9: steps.two.after: the step waits for itself
line 12: steps.three.task.attempt_timeout: "soon" is not a duration such as 90s or 2m
line 12: steps.three.task.queue: queue "q@home" names a topic, so no @ = + and at most some 200 characters
line 15: steps.four.fan_out.split: queue "s.retry-1s": ".retry-" in a name means a retry tier
line 17: steps.four.fan_out.retry.attempts: 101, at most 100
line 17: steps.four.fan_out.retry.factor: 0.5, from 1 to 1000
line 17: steps.four.fan_out.retry.max: 5m0s is shorter than the first delay, 10m0s
line 18: steps.four.fan_out.policy.tolerate: "101%": a number of failures such as 5, or a percentage such as 1%
line 20: steps.four.fan_out.attempt_timeout: 2m0s is longer than the step may take, 1m0s
line 21: steps.five.fan_out.policy.min_sample: only a percentage needs a sample
line 21: steps.five.fan_out.on_deadline: there is no deadline: set complete_by or no_progress_for
line 22: steps.six.fan_out.policy.tolerate: does not go with kind fail_fast
line 22: steps.six.fan_out.on_deadline: "panic": expire or close
line 23: steps.seven.fan_out.policy.kind: "sometimes": continue, fail_fast or tolerate
line 23: steps.seven.fan_out.no_progress_for: 1ns: whole milliseconds, not negative
line 24: steps.eight.fan_out.policy.min_sample: does not go with kind continue`), err.Error())
}

func TestJobTypeBounds(t *testing.T) {
	j := &JobType{Name: "j", Version: 1, Steps: map[string]Step{}}
	require.EqualError(t, j.Validate(), "steps: 0 steps, from 1 to 100")
	for i := range 101 {
		j.Steps[strings.Repeat("x", i+1)[:min(i+1, 48)]+strings.Repeat("y", max(i-47, 0))] = Step{Task: &Task{Queue: "q"}}
	}
	err := j.Validate()
	require.ErrorContains(t, err, "steps: 101 steps, from 1 to 100")
	require.ErrorContains(t, err, "the name has 49 characters, at most 48")
	_, err = j.Definition()
	require.ErrorContains(t, err, "job type j: steps: 101 steps")
}

func TestJobTypeDefinition(t *testing.T) {
	for _, name := range []string{"invoices", "diamond"} {
		def, err := sampleJob(t, name).Definition()
		require.NoError(t, err)
		var order []string
		for _, s := range def.Steps {
			order = append(order, s.Name)
			require.Subset(t, order, s.After, "behind what it comes after")
		}
		require.Equal(t, sampleJob(t, name).Digest(), def.Digest)
	}
	def, err := invoices().Definition()
	require.NoError(t, err)
	def.Digest = nil
	got, err := protojson.Marshal(def)
	require.NoError(t, err)
	require.JSONEq(t, `{"name": "invoices", "version": 1, "steps": [
		{"name": "s1", "task": {"queue": "invoices.prepare",
			"retry": {"attempts": 5, "first": "1000", "factor": 4, "max": "300000"}}},
		{"name": "s2", "after": ["s1"], "fanOut": {"split": "invoices.split", "queue": "invoices.render", "window": 64,
			"retry": {"attempts": 5, "first": "1000", "factor": 4, "max": "300000"}, "attemptTimeout": "120000",
			"policy": {"kind": "tolerate", "tolerate": "1%", "minSample": 100}, "completeBy": "3600000",
			"onDeadline": "close", "maxTotal": 10000000}},
		{"name": "s3", "after": ["s2"], "task": {"queue": "invoices.report",
			"retry": {"attempts": 5, "first": "1000", "factor": 4, "max": "300000"}}}]}`, string(got))
}

func TestJobTypeDigest(t *testing.T) {
	seen := map[string]string{}
	fan := func(change func(*FanOut)) func(*JobType) { return func(j *JobType) { change(j.Steps["s2"].FanOut) } }
	for name, change := range map[string]func(*JobType){
		"base":            func(*JobType) {},
		"name":            func(j *JobType) { j.Name = "x" },
		"version":         func(j *JobType) { j.Version = 2 },
		"complete by":     func(j *JobType) { j.CompleteBy = time.Hour },
		"retention":       func(j *JobType) { j.Retention = time.Hour },
		"queue":           func(j *JobType) { j.Steps["s1"].Task.Queue = "x" },
		"task timeout":    func(j *JobType) { j.Steps["s1"].Task.AttemptTimeout = time.Second },
		"task retry":      func(j *JobType) { j.Steps["s1"].Task.Retry = &Retry{Attempts: 1} },
		"after":           func(j *JobType) { j.Steps["s3"] = Step{After: []string{"s1", "s2"}, Task: j.Steps["s3"].Task} },
		"split":           fan(func(f *FanOut) { f.Split = "x" }),
		"sub-jobs":        fan(func(f *FanOut) { f.Queue = "x" }),
		"window":          fan(func(f *FanOut) { f.Window = 65 }),
		"retry":           fan(func(f *FanOut) { f.Retry.Factor = 2 }),
		"attempt timeout": fan(func(f *FanOut) { f.AttemptTimeout = time.Minute }),
		"tolerate":        fan(func(f *FanOut) { f.Policy.Tolerate = "2%" }),
		"sample":          fan(func(f *FanOut) { f.Policy.MinSample = 99 }),
		"kind":            fan(func(f *FanOut) { f.Policy = &Policy{Kind: "fail_fast"} }),
		"step deadline":   fan(func(f *FanOut) { f.CompleteBy = 2 * time.Hour }),
		"no progress":     fan(func(f *FanOut) { f.NoProgressFor = time.Minute }),
		"on deadline":     fan(func(f *FanOut) { f.OnDeadline = "expire" }),
		"open children":   fan(func(f *FanOut) { f.OpenChildren = true }),
		"max total":       fan(func(f *FanOut) { f.MaxTotal = 5 }),
	} {
		j := invoices()
		change(j)
		other, dup := seen[string(j.Digest())]
		require.False(t, dup, "%s has the digest of %s", name, other)
		seen[string(j.Digest())] = name
	}
}

func TestJobTypeRenderGolden(t *testing.T) {
	for _, name := range []string{"invoices", "diamond"} {
		j := sampleJob(t, name)
		golden(t, "job-"+name+".txt", j.Text())
		golden(t, "job-"+name+".mmd", j.Mermaid())
		golden(t, "job-"+name+".dot", j.DOT())
	}
}

func TestQueuesOfJobTypes(t *testing.T) {
	queues := Queues(sampleJob(t, "invoices"), sampleJob(t, "diamond"))
	var names []string
	for _, q := range queues {
		names = append(names, q.Name)
	}
	require.Equal(t, []string{"invoices.prepare", "invoices.render", "invoices.report", "invoices.split",
		"nightly.count", "nightly.price", "nightly.publish", "nightly.split", "nightly.start"}, names)
	require.NoError(t, Settings{Queues: queues}.Validate())
}

// TestRandomStepGraphs: steps that only come after earlier ones have an order; one edge back is named.
func TestRandomStepGraphs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d", "e", "f"}[:rapid.IntRange(2, 6).Draw(t, "n")]
		j := &JobType{Name: "j", Version: 1, Steps: map[string]Step{}}
		for i, n := range names {
			var after []string
			if i > 0 {
				after = rapid.SliceOfNDistinct(rapid.SampledFrom(names[:i]), 0, i, rapid.ID).Draw(t, "after")
			}
			j.Steps[n] = Step{After: after, Task: &Task{Queue: "q"}}
		}
		require.NoError(t, j.Validate())
		_, err := j.Order()
		require.NoError(t, err)

		last := names[len(names)-1]
		s := j.Steps[last]
		s.After = []string{names[0]}
		j.Steps[last] = s
		j.Steps[names[0]] = Step{After: []string{last}, Task: &Task{Queue: "q"}}
		_, err = j.Order()
		require.ErrorContains(t, err, "job type j: steps wait for each other")
		require.ErrorContains(t, j.Validate(), "steps."+last+".after: the step waits for itself")
	})
}

// FuzzLoadJobType: no bytes make the loader panic; what it accepts can be pinned at a start.
func FuzzLoadJobType(f *testing.F) {
	for _, name := range []string{"invoices", "diamond"} {
		b, err := os.ReadFile("../testdata/jobs/" + name + ".yaml")
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		j, err := LoadJobType(b)
		if err != nil {
			require.Nil(t, j)
			require.NotEmpty(t, err.Error())
			return
		}
		def, err := j.Definition()
		require.NoError(t, err)
		require.Len(t, def.Steps, len(j.Steps))
		require.NotEmpty(t, j.Text()+j.Mermaid()+j.DOT())
	})
}

// TestJobTypeCanonicalForm pins the form: the digest of a running job must be found again by a later release.
func TestJobTypeCanonicalForm(t *testing.T) {
	require.Equal(t, `job "invoices" 1
step "s1" after [] task "invoices.prepare" retry 5/1000/4/300000
step "s2" after ["s1"] fan_out "invoices.split" "invoices.render" window=64 retry 5/1000/4/300000 `+
		`policy tolerate/"1%"/100 max_total=10000000 attempt_timeout=2m0s complete_by=1h0m0s on_deadline=close
step "s3" after ["s2"] task "invoices.report" retry 5/1000/4/300000
`, invoices().Canonical())
}
