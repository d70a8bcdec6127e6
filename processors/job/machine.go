package job

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

// Defaults of Config.
const (
	DefaultRetention = 7 * 24 * 60 * 60 * 1000 // ms
	maxRowBytes      = 256 << 10
	maxResults       = 160 << 10                       // bytes of input and results by value in one job
	untilCollected   = 100 * 365 * 24 * 60 * 60 * 1000 // ms; a step's batch is kept for its job and collected with it, by gc
	maxInline        = 64 << 10                        // bytes of one payload by value
	maxSteps         = 100
	maxAnswers       = 32
	maxChunks        = 1024
	maxWaiting       = 1000 // jobs of one customer that wait for a slot
	maxWatchers      = 100
	maxAwaits        = 100
)

// Config of the machine. It is part of what a row's life depends on: every instance of a deployment uses the same.
type Config struct {
	Types       []*codecs.JobType // known definitions; a request may bring its own
	Queues      []string          // that exist; a definition that names another is refused. Default nil: all do
	MaxPerCust  int               // jobs of a customer that run at once; 0 = no limit (default). Needs key: customer
	RetentionMs int64             // from the end of a job to its collection; default 7 days
}

// Machine implements the runtime's contract for the workflow group.
type Machine struct {
	types     map[string]*codecs.JobType // by name@version and by name (highest)
	queues    map[string]bool            // nil = all exist
	perCust   int
	retention int64
}

// New checks the definitions and returns the machine.
func New(cfg Config) (*Machine, error) {
	m := &Machine{types: map[string]*codecs.JobType{}, perCust: cfg.MaxPerCust, retention: cfg.RetentionMs}
	if m.retention == 0 {
		m.retention = DefaultRetention
	}
	if cfg.Queues != nil {
		m.queues = map[string]bool{}
		for _, q := range cfg.Queues {
			m.queues[q] = true
		}
	}
	for _, t := range cfg.Types {
		if err := validType(t); err != nil {
			return nil, fmt.Errorf("job type %s@%d: %w", t.GetName(), t.GetVersion(), err)
		}
		k := typeKey(t.Name, t.Version)
		if old := m.types[k]; old != nil && !proto.Equal(old, t) {
			return nil, fmt.Errorf("job type %s: two definitions of one version", k)
		}
		m.types[k] = t
		if high := m.types[t.Name]; high == nil || high.Version < t.Version {
			m.types[t.Name] = t
		}
	}
	return m, nil
}

func typeKey(name string, version uint32) string { return fmt.Sprintf("%s@%d", name, version) }

// Role is workflow.
func (*Machine) Role() string { return codecs.GroupWorkflow }

// Input is the jobs topic.
func (*Machine) Input() string { return codecs.TopicJobs }

// MaxRowBytes bounds a row.
func (*Machine) MaxRowBytes() int { return maxRowBytes }

// Decode reads an input record. Rows are keyed by the whole record key.
func (*Machine) Decode(rec *codecs.Record, ev *codecs.Event) error {
	if err := codecs.Decode(rec, ev); err != nil {
		return err
	}
	ev.Key = string(rec.Key)
	switch ev.Data.(type) {
	case *codecs.JobRequested, *codecs.JobCommand, *codecs.JobNudge, *codecs.TaskCompleted, *codecs.SplitProposed,
		*codecs.BatchEnded, *codecs.JobEnded, *codecs.JobAdmission:
		return nil
	}
	return fmt.Errorf("%w: %s on the jobs topic", codecs.ErrUnknownType, ev.Type)
}

// step is one call of Step: the row, the event, and what goes out.
type step struct {
	m   *Machine
	r   *codecs.JobRow
	off int64
	ev  *codecs.Event
	out []codecs.Message

	timing *codecs.Timing // of the step's task, for the event of its end
}

// apply dispatches one event to a job's row.
func (s *step) apply() {
	if s.ev.Time > s.r.Now {
		s.r.Now = s.ev.Time
	}
	switch d := s.ev.Data.(type) {
	case *codecs.JobRequested:
		s.requested(d)
	case *codecs.JobCommand:
		s.command(d)
	case *codecs.JobNudge:
		s.deadlines()
	case *codecs.TaskCompleted:
		s.taskCompleted(d)
	case *codecs.SplitProposed:
		s.splitProposed(d)
	case *codecs.BatchEnded:
		s.batchEnded(d)
	case *codecs.JobEnded:
		s.awaitedJob(d)
	case *codecs.JobAdmission:
		s.admitted(d)
	}
}

// jobOf splits a row key into customer and job; a key without 0x00 is a job.
func jobOf(key string) (customer, job string) {
	if c, j, ok := strings.Cut(key, "\x00"); ok {
		return c, j
	}
	return "", key
}
