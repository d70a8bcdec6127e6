package topology

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quiesce/quiesce/codecs"
)

// JobType declares a job: steps that run when those before them have ended. It is plain data; the zero value of an
// optional field is its default (WithDefaults).
type JobType struct {
	Name       string          `yaml:"job"`
	Version    uint32          `yaml:"version"`     // from 1
	CompleteBy time.Duration   `yaml:"complete_by"` // after the job's start; 0 = no deadline
	Retention  time.Duration   `yaml:"retention"`   // from the end to the collection; 0 = the deployment's
	Steps      map[string]Step `yaml:"steps"`
}

// Step is one task or a fan-out. Its name is its key in JobType.Steps.
type Step struct {
	After  []string `yaml:"after"` // steps that must have ended
	Task   *Task    `yaml:"task"`
	FanOut *FanOut  `yaml:"fan_out"`
}

// Task is one task of a queue.
type Task struct {
	Queue          string        `yaml:"queue"`
	Retry          *Retry        `yaml:"retry"`
	AttemptTimeout time.Duration `yaml:"attempt_timeout"` // from the start of the attempt; 0 = none
}

// FanOut is a batch of tasks of one queue, as many as a splitter says.
type FanOut struct {
	Split          string        `yaml:"split"`           // queue whose workers split
	Queue          string        `yaml:"queue"`           // queue of the sub-jobs
	Window         uint32        `yaml:"window"`          // sub-jobs released at once; default 1,000
	Retry          *Retry        `yaml:"retry"`           // of each sub-job, and of the splitter
	AttemptTimeout time.Duration `yaml:"attempt_timeout"` // from the start of the attempt; 0 = none
	Policy         *Policy       `yaml:"policy"`          // default continue
	CompleteBy     time.Duration `yaml:"complete_by"`     // after the step's start; 0 = no deadline
	NoProgressFor  time.Duration `yaml:"no_progress_for"` // since the last outcome; 0 = no deadline
	OnDeadline     string        `yaml:"on_deadline"`     // expire (default) or close
	OpenChildren   bool          `yaml:"open_children"`   // sub-jobs may add sub-jobs
	MaxTotal       uint32        `yaml:"max_total"`       // sub-jobs at most; default 10,000,000
}

// Retry says when a failed attempt is followed by another.
type Retry struct {
	Attempts uint32        `yaml:"attempts"` // in all; 1 = no retry; default 5
	First    time.Duration `yaml:"first"`    // before the second attempt; default 1s
	Factor   float64       `yaml:"factor"`   // each delay to the one before; default 4
	Max      time.Duration `yaml:"max"`      // of a delay; default 5m
}

// Policy says when failures end a batch.
type Policy struct {
	Kind      string `yaml:"kind"`       // continue, fail_fast or tolerate; default tolerate if that is set, else continue
	Tolerate  string `yaml:"tolerate"`   // failures: a number, or a percentage of the attempted tasks
	MinSample uint32 `yaml:"min_sample"` // attempted tasks before a percentage is judged
}

const (
	defaultWindow   = 1000
	defaultMaxTotal = 10_000_000
	onExpire        = "expire"
	onClose         = "close"
	policyContinue  = "continue"
	policyFailFast  = "fail_fast"
	policyTolerate  = "tolerate"
)

// LoadJobType reads a job type file (YAML). The error is Faults, all of them, with the lines of the file.
func LoadJobType(b []byte) (*JobType, error) {
	j := &JobType{}
	lines, faults := decode(b, j)
	for _, f := range j.check() {
		if !faults.covers(f.Path) { // what is missing because it could not be read is reported once
			faults = append(faults, f)
		}
	}
	faults.locate(lines)
	if err := faults.err(); err != nil {
		return nil, err
	}
	return j, nil
}

// WithDefaults returns the job type with every absent field filled in. It shares nothing with j that it changed.
func (j JobType) WithDefaults() JobType {
	steps := make(map[string]Step, len(j.Steps))
	for name, s := range j.Steps {
		if s.Task != nil {
			t := *s.Task
			t.Retry = t.Retry.withDefaults()
			s.Task = &t
		}
		if s.FanOut != nil {
			f := s.FanOut.withDefaults()
			s.FanOut = &f
		}
		steps[name] = s
	}
	j.Steps = steps
	return j
}

func (f FanOut) withDefaults() FanOut {
	def(&f.Window, defaultWindow)
	def(&f.OnDeadline, onExpire)
	def(&f.MaxTotal, defaultMaxTotal)
	f.Retry = f.Retry.withDefaults()
	p := Policy{}
	if f.Policy != nil {
		p = *f.Policy
	}
	if p.Kind == "" && p.Tolerate != "" {
		p.Kind = policyTolerate
	}
	def(&p.Kind, policyContinue)
	f.Policy = &p
	return f
}

func (r *Retry) withDefaults() *Retry {
	c := Retry{}
	if r != nil {
		c = *r
	}
	def(&c.Attempts, 5)
	def(&c.First, time.Second)
	def(&c.Factor, 4)
	def(&c.Max, 5*time.Minute)
	return &c
}

// Order returns the steps such that each stands behind those it comes after, ties by name. The error names the steps
// that wait for each other.
func (j *JobType) Order() ([]string, error) {
	order, rest := j.order()
	if len(rest) > 0 {
		return nil, fmt.Errorf("job type %s: steps wait for each other: %v", j.Name, rest)
	}
	return order, nil
}

func (j *JobType) order() (order, rest []string) {
	return layers(sortedKeys(j.Steps), func(before, step string) bool { return slices.Contains(j.Steps[step].After, before) })
}

// Canonical is the form that the digest is taken of: one line for the job and each step, in order, defaults filled in,
// so that the digest names what the job does.
func (j *JobType) Canonical() string {
	d := j.WithDefaults()
	var b strings.Builder
	fmt.Fprintf(&b, "job %q %d", d.Name, d.Version)
	option(&b, "complete_by", d.CompleteBy, d.CompleteBy != 0)
	option(&b, "retention", d.Retention, d.Retention != 0)
	b.WriteByte('\n')
	for _, name := range sortedKeys(d.Steps) {
		s := d.Steps[name]
		fmt.Fprintf(&b, "step %q after %q", name, sorted(s.After))
		if t := s.Task; t != nil {
			fmt.Fprintf(&b, " task %q retry %s", t.Queue, t.Retry.canonical())
			option(&b, "attempt_timeout", t.AttemptTimeout, t.AttemptTimeout != 0)
		}
		if f := s.FanOut; f != nil {
			fmt.Fprintf(&b, " fan_out %q %q window=%d retry %s policy %s/%q/%d max_total=%d", f.Split, f.Queue, f.Window,
				f.Retry.canonical(), f.Policy.Kind, f.Policy.Tolerate, f.Policy.MinSample, f.MaxTotal)
			option(&b, "attempt_timeout", f.AttemptTimeout, f.AttemptTimeout != 0)
			option(&b, "complete_by", f.CompleteBy, f.CompleteBy != 0)
			option(&b, "no_progress_for", f.NoProgressFor, f.NoProgressFor != 0)
			option(&b, "on_deadline", f.OnDeadline, f.OnDeadline != onExpire)
			option(&b, "open_children", true, f.OpenChildren)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (r *Retry) canonical() string {
	return fmt.Sprintf("%d/%d/%v/%d", r.Attempts, r.First.Milliseconds(), r.Factor, r.Max.Milliseconds())
}

// Digest is the sha-256 of the canonical form: the same name and version with another digest is refused.
func (j *JobType) Digest() []byte {
	d := sha256.Sum256([]byte(j.Canonical()))
	return d[:]
}

// Definition returns the job type as it is pinned at a job's start: defaults filled in, steps in order.
func (j *JobType) Definition() (*codecs.JobType, error) {
	if err := j.Validate(); err != nil {
		return nil, fmt.Errorf("job type %s: %w", j.Name, err)
	}
	d := j.WithDefaults()
	order, _ := d.order()
	def := &codecs.JobType{Name: d.Name, Version: d.Version, Digest: j.Digest(),
		Retention: d.Retention.Milliseconds(), CompleteBy: d.CompleteBy.Milliseconds()}
	for _, name := range order {
		s := d.Steps[name]
		spec := &codecs.StepSpec{Name: name, After: sorted(s.After)}
		if t := s.Task; t != nil {
			spec.Task = &codecs.TaskSpec{Queue: t.Queue, Retry: t.Retry.spec(), AttemptTimeout: t.AttemptTimeout.Milliseconds()}
		}
		if s.FanOut != nil {
			spec.FanOut = s.FanOut.spec()
		}
		def.Steps = append(def.Steps, spec)
	}
	return def, nil
}

func (f *FanOut) spec() *codecs.FanOutSpec {
	return &codecs.FanOutSpec{
		Split: f.Split, Queue: f.Queue, Window: f.Window, Retry: f.Retry.spec(),
		AttemptTimeout: f.AttemptTimeout.Milliseconds(),
		Policy:         &codecs.Policy{Kind: f.Policy.Kind, Tolerate: f.Policy.Tolerate, MinSample: f.Policy.MinSample},
		CompleteBy:     f.CompleteBy.Milliseconds(), NoProgressFor: f.NoProgressFor.Milliseconds(),
		OnDeadline: f.OnDeadline, OpenChildren: f.OpenChildren, MaxTotal: f.MaxTotal,
	}
}

func (r *Retry) spec() *codecs.Retry {
	return &codecs.Retry{Attempts: r.Attempts, First: r.First.Milliseconds(), Factor: r.Factor, Max: r.Max.Milliseconds()}
}

// Queues returns the queues that job types use, by name, with default partitions and tiers.
func Queues(types ...*JobType) []Queue {
	names := map[string]bool{}
	for _, j := range types {
		for _, s := range j.Steps {
			if s.Task != nil {
				names[s.Task.Queue] = true
			}
			if s.FanOut != nil {
				names[s.FanOut.Split], names[s.FanOut.Queue] = true, true
			}
		}
	}
	var queues []Queue
	for _, name := range sortedKeys(names) {
		queues = append(queues, Queue{Name: name})
	}
	return queues
}
