package conformance

import (
	"fmt"
	"sort"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quiesce/quiesce/codecs"
)

// endings are the event types that end a batch.
var endings = []string{
	codecs.TypeBatchCompleted, codecs.TypeBatchCompletedWithFailures, codecs.TypeBatchFailed, codecs.TypeBatchCancelled,
	codecs.TypeBatchExpired, codecs.TypeBatchInconsistent, codecs.TypeJobCompleted, codecs.TypeJobFailed, codecs.TypeJobCancelled,
}

// seen is what came out about one batch or job.
type seen struct {
	events      map[string]map[string]bool // type -> distinct ids
	run         string                     // of the last batch.started
	last        *codecs.BatchEvent         // the last one with a state
	job         *codecs.JobEvent           // the last one of the job itself
	steps       map[string]string          // the last state of each step of a job
	tasks       map[string]bool            // that were given out
	taken       int                        // of these, by the script
	deliveries  map[string]map[string]bool // of notifications: type of the event -> distinct ids
	deadLetters []string                   // reasons
	odd         []string                   // counts whose sum is not their total
}

func newSeen() *seen {
	return &seen{events: map[string]map[string]bool{}, steps: map[string]string{}, tasks: map[string]bool{}, deliveries: map[string]map[string]bool{}}
}

// count adds an id under a name.
func count(to map[string]map[string]bool, name, id string) {
	if to[name] == nil {
		to[name] = map[string]bool{}
	}
	to[name][id] = true
}

func (s *seen) add(typ, id string, data any) {
	count(s.events, typ, id)
	switch e := data.(type) {
	case *codecs.BatchEvent:
		if typ == codecs.TypeBatchStarted {
			s.run = e.Run
		}
		if e.State != 0 {
			s.last = e
		}
		s.sum(typ, e.Counts)
	case *codecs.JobEvent:
		if e.Step == "" {
			s.job = e
		} else {
			s.steps[e.Step] = e.StepState.String()
		}
		s.sum(typ, e.Counts)
	}
}

// sum holds what every answer of every script must hold: the total is the sum of the parts, once there is a total.
func (s *seen) sum(typ string, c *codecs.Counts) {
	if c.GetTotal() == 0 {
		return
	}
	n := uint64(c.Pending) + uint64(c.Running) + uint64(c.Ok) + uint64(c.Failed) + uint64(c.Skipped) + uint64(c.Cancelled) +
		uint64(c.TimedOut) + uint64(c.Lost) + uint64(c.Unknown)
	if n != uint64(c.Total) {
		s.odd = append(s.odd, fmt.Sprintf("%s: %d of %d tasks in its counts", typ, n, c.Total))
	}
}

// check returns every difference, in words.
func (e *Expectation) check(s *seen) (faults []string) {
	fault := func(format string, v ...any) {
		faults = append(faults, fmt.Sprintf("%s: "+format, append([]any{e.Of}, v...)...))
	}
	for _, typ := range keys(e.Events) {
		if got := len(s.events[typ]); got != e.Events[typ] {
			fault("%d events %s, want %d", got, typ, e.Events[typ])
		}
	}
	for _, typ := range endings {
		if _, named := e.Events[typ]; !named && len(s.events[typ]) > 0 {
			fault("%d events %s, want none", len(s.events[typ]), typ)
		}
	}
	if len(s.deadLetters) != e.DeadLetters {
		fault("%d dead letters %q, want %d", len(s.deadLetters), s.deadLetters, e.DeadLetters)
	}
	for _, reason := range s.deadLetters {
		if !strings.Contains(reason, e.DeadLetter) {
			fault("dead letter %q, want %q in it", reason, e.DeadLetter)
		}
	}
	for _, odd := range s.odd {
		fault("%s", odd)
	}
	for _, typ := range keys(e.Deliveries) {
		if got := len(s.deliveries[typ]); got != e.Deliveries[typ] {
			fault("%d deliveries of %s, want %d", got, typ, e.Deliveries[typ])
		}
	}
	if e.Tasks != nil && len(s.tasks) != *e.Tasks {
		fault("%d tasks were given out, want %d", len(s.tasks), *e.Tasks)
	}
	for _, step := range keys(e.Steps) {
		if got := s.steps[step]; got != e.Steps[step] {
			fault("step %s is %q, want %q", step, got, e.Steps[step])
		}
	}
	if s.job != nil {
		e.checkJob(s.job, fault)
		return faults
	}
	e.checkLast(s.last, fault)
	return faults
}

func (e *Expectation) checkJob(last *codecs.JobEvent, fault func(string, ...any)) {
	if e.State != "" && last.State.String() != e.State {
		fault("state %s, want %s", last.State, e.State)
	}
	if e.Round != 0 && last.Round != e.Round {
		fault("round %d, want %d", last.Round, e.Round)
	}
	if !strings.Contains(last.Reason, e.Reason) {
		fault("reason %q, want %q in it", last.Reason, e.Reason)
	}
}

func (e *Expectation) checkLast(last *codecs.BatchEvent, fault func(string, ...any)) {
	if last == nil {
		if e.State != "" || e.Empty != nil || e.Counts != nil || e.Audit != nil || e.Round != 0 || e.Reason != "" {
			fault("no event with a state")
		}
		return
	}
	if e.State != "" && last.State.String() != e.State {
		fault("state %s, want %s", last.State, e.State)
	}
	if e.Empty != nil && last.Empty != *e.Empty {
		fault("empty %v, want %v", last.Empty, *e.Empty)
	}
	if e.Round != 0 && last.Round != e.Round {
		fault("round %d, want %d", last.Round, e.Round)
	}
	if !strings.Contains(last.Reason, e.Reason) {
		fault("reason %q, want %q in it", last.Reason, e.Reason)
	}
	for _, name := range keys(e.Counts) {
		if got, ok := number(last.GetCounts().ProtoReflect(), name); !ok || got != uint64(e.Counts[name]) {
			fault("%d %s, want %d", got, name, e.Counts[name])
		}
	}
	for _, name := range keys(e.Audit) {
		if got, ok := number(last.GetAudit().ProtoReflect(), name); !ok || got != e.Audit[name] {
			fault("%d %s, want %d", got, name, e.Audit[name])
		}
	}
}

// number reads a field of a message by its name in the schema.
func number(m protoreflect.Message, name string) (uint64, bool) {
	f := m.Descriptor().Fields().ByName(protoreflect.Name(name))
	if f == nil {
		return 0, false
	}
	return m.Get(f).Uint(), true
}

func keys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
