package topology

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quiesce/quiesce/codecs"
)

// Bounds of a job type.
const (
	MaxSteps    = 100
	maxStepName = 48 // a step's batch is named after job, step and round
	maxAttempts = 100
)

// Validate reports everything that is wrong with the job type. The error is Faults.
func (j *JobType) Validate() error { return j.check().err() }

func (j *JobType) check() (f Faults) {
	if err := codecs.ValidID("job type", j.Name); err != nil {
		f.add("job", "%v", err)
	}
	if j.Version == 0 {
		f.add("version", "missing: a whole number from 1")
	}
	if len(j.Steps) == 0 || len(j.Steps) > MaxSteps {
		f.add("steps", "%d steps, from 1 to %d", len(j.Steps), MaxSteps)
	}
	f.whole("complete_by", j.CompleteBy)
	f.whole("retention", j.Retention)
	for _, name := range sortedKeys(j.Steps) {
		j.checkStep(name, &f)
	}
	_, rest := j.order()
	for _, name := range rest {
		if j.waitsFor(name, name) {
			f.add(join("steps", name)+".after", "the step waits for itself")
		}
	}
	return f
}

func (j *JobType) checkStep(name string, f *Faults) {
	s, path := j.Steps[name], join("steps", name)
	if err := codecs.ValidID("step", name); err != nil {
		f.add(path, "%v", err)
	} else if len(name) > maxStepName {
		f.add(path, "the name has %d characters, at most %d", len(name), maxStepName)
	}
	for i, before := range s.After {
		if _, ok := j.Steps[before]; !ok {
			f.add(at(path+".after", i), "there is no step %q", before)
		}
		if slices.Index(s.After, before) < i {
			f.add(at(path+".after", i), "step %q is there twice", before)
		}
	}
	switch {
	case (s.Task == nil) == (s.FanOut == nil):
		f.add(path, "a step is either a task or a fan_out")
	case s.Task != nil:
		f.queue(path+".task.queue", s.Task.Queue)
		f.retry(path+".task.retry", s.Task.Retry)
		f.whole(path+".task.attempt_timeout", s.Task.AttemptTimeout)
	default:
		f.fanOut(path+".fan_out", s.FanOut)
	}
}

// waitsFor says whether a step comes after another, directly or not.
func (j *JobType) waitsFor(step, other string) bool {
	seen := map[string]bool{}
	for todo := j.Steps[step].After; len(todo) > 0; {
		var next []string
		for _, s := range todo {
			if s == other {
				return true
			}
			if !seen[s] {
				seen[s] = true
				next = append(next, j.Steps[s].After...)
			}
		}
		todo = next
	}
	return false
}

func (f *Faults) fanOut(path string, o *FanOut) {
	f.queue(path+".split", o.Split)
	f.queue(path+".queue", o.Queue)
	f.retry(path+".retry", o.Retry)
	f.policy(path+".policy", o.Policy)
	f.whole(path+".attempt_timeout", o.AttemptTimeout)
	f.whole(path+".complete_by", o.CompleteBy)
	f.whole(path+".no_progress_for", o.NoProgressFor)
	switch o.OnDeadline {
	case "":
	case onExpire, onClose:
		if o.CompleteBy == 0 && o.NoProgressFor == 0 {
			f.add(path+".on_deadline", "there is no deadline: set complete_by or no_progress_for")
		}
	default:
		f.add(path+".on_deadline", "%q: %s or %s", o.OnDeadline, onExpire, onClose)
	}
	if o.CompleteBy > 0 && o.AttemptTimeout > o.CompleteBy {
		f.add(path+".attempt_timeout", "%v is longer than the step may take, %v", o.AttemptTimeout, o.CompleteBy)
	}
}

func (f *Faults) queue(path, name string) {
	if name == NotifyQueue {
		f.add(path, "queue %q is the deployment's own", name)
		return
	}
	if err := (Queue{Name: name}).WithDefaults().Validate(); err != nil {
		f.add(path, "%v", err)
	} else if err := ValidTopic(RetryTopic(codecs.DefaultPrefix, name, math.MaxInt64)); err != nil {
		f.add(path, "queue %q names a topic, so no @ = + and at most some 200 characters", name)
	}
}

func (f *Faults) retry(path string, r *Retry) {
	r = r.withDefaults()
	if r.Attempts > maxAttempts {
		f.add(path+".attempts", "%d, at most %d", r.Attempts, maxAttempts)
	}
	if !(r.Factor >= 1 && r.Factor <= 1000) { // NaN is neither
		f.add(path+".factor", "%v, from 1 to 1000", r.Factor)
	}
	f.whole(path+".first", r.First)
	f.whole(path+".max", r.Max)
	if r.First > r.Max {
		f.add(path+".max", "%v is shorter than the first delay, %v", r.Max, r.First)
	}
}

func (f *Faults) policy(path string, p *Policy) {
	if p == nil {
		return
	}
	switch kind := (FanOut{Policy: p}).withDefaults().Policy.Kind; {
	case kind != policyContinue && kind != policyFailFast && kind != policyTolerate:
		f.add(path+".kind", "%q: %s, %s or %s", kind, policyContinue, policyFailFast, policyTolerate)
	case kind == policyTolerate:
		n, percent := strings.CutSuffix(p.Tolerate, "%")
		v, err := strconv.ParseFloat(n, 64)
		if err != nil || !(v >= 0) || percent && v > 100 || !percent && v != float64(uint32(v)) {
			f.add(path+".tolerate", "%q: a number of failures such as 5, or a percentage such as 1%%", p.Tolerate)
		} else if p.MinSample > 0 && !percent {
			f.add(path+".min_sample", "only a percentage needs a sample")
		}
	case p.Tolerate != "":
		f.add(path+".tolerate", "does not go with kind %s", kind)
	case p.MinSample > 0:
		f.add(path+".min_sample", "does not go with kind %s", kind)
	}
}

// whole checks a duration: not negative, whole milliseconds.
func (f *Faults) whole(path string, d time.Duration) {
	if d < 0 || d%time.Millisecond != 0 {
		f.add(path, "%v: whole milliseconds, not negative", d)
	}
}
