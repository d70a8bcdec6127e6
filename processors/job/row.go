package job

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

// format and behaviour that this release writes.
const (
	rowFormat = 1
	behaviour = 1
)

// Row is the state of one job, or of the admission of one customer (exactly one of the two is set once an event was
// applied).
type Row struct {
	key      string
	Job      *codecs.JobRow
	Customer *codecs.CustomerRow
}

// NewRow makes the empty row of a key.
func (m *Machine) NewRow(key string) codecs.Row { return &Row{key: key} }

// first byte of a row's bytes.
const (
	kindJob      = 'j'
	kindCustomer = 'c'
	kindEmpty    = 'e'
)

// AppendBinary appends one byte of kind and the protobuf of the row.
func (r *Row) AppendBinary(b []byte) ([]byte, error) {
	opt := proto.MarshalOptions{Deterministic: true}
	switch {
	case r.Job != nil:
		return opt.MarshalAppend(append(b, kindJob), r.Job)
	case r.Customer != nil:
		return opt.MarshalAppend(append(b, kindCustomer), r.Customer)
	}
	return append(b, kindEmpty), nil
}

// LoadRow reads what AppendBinary wrote.
func (m *Machine) LoadRow(key string, b []byte) (codecs.Row, error) {
	r := &Row{key: key}
	if len(b) == 0 {
		return nil, fmt.Errorf("job row %q: empty", key)
	}
	var err error
	var format uint32
	switch b[0] {
	case kindEmpty:
	case kindJob:
		r.Job = &codecs.JobRow{}
		err = proto.Unmarshal(b[1:], r.Job)
		format = r.Job.Format
	case kindCustomer:
		r.Customer = &codecs.CustomerRow{}
		err = proto.Unmarshal(b[1:], r.Customer)
		format = r.Customer.Format
	default:
		err = fmt.Errorf("kind %q", b[0])
	}
	if err != nil {
		return nil, fmt.Errorf("job row %q: %w", key, err)
	}
	if format > rowFormat {
		return nil, fmt.Errorf("job row %q: %w: %d", key, codecs.ErrNewFormat, format)
	}
	return r, nil
}

// String is one stable line.
func (r *Row) String() string {
	switch {
	case r.Job != nil:
		return jobLine(r.Job)
	case r.Customer != nil:
		c := r.Customer
		w := make([]string, len(c.Waiting))
		for i, j := range c.Waiting {
			w[i] = j.Job
		}
		return fmt.Sprintf("customer %s running=%v waiting=%v", c.Customer, c.Running, w)
	}
	return "empty"
}

func jobLine(j *codecs.JobRow) string {
	var b strings.Builder
	fmt.Fprintf(&b, "job %s", j.Job)
	if j.Customer != "" {
		fmt.Fprintf(&b, " customer=%s", j.Customer)
	}
	fmt.Fprintf(&b, " type=%s@%d %s v%d", j.Definition.GetName(), j.Definition.GetVersion(), j.State, j.Version)
	if j.Paused {
		b.WriteString(" paused")
	}
	if j.Round > 1 {
		fmt.Fprintf(&b, " round=%d", j.Round)
	}
	if n := len(j.AwaitsBatches) + len(j.AwaitsJobs); n > 0 {
		fmt.Fprintf(&b, " awaits=%d", n)
	}
	if j.AwaitsSlot {
		b.WriteString(" awaits-slot")
	}
	for i, s := range j.Steps {
		fmt.Fprintf(&b, " | %s %s", j.Definition.Steps[i].Name, s.State)
		if s.Round > 1 {
			fmt.Fprintf(&b, " round=%d", s.Round)
		}
		if s.Batch != "" {
			fmt.Fprintf(&b, " batch=%s/%d", s.Batch, s.BatchRound)
		}
		if c := s.Counts; c != nil {
			fmt.Fprintf(&b, " total=%d ok=%d", c.Total, c.Ok)
		}
		if s.Reason != "" {
			fmt.Fprintf(&b, " reason=%q", s.Reason)
		}
	}
	if a := j.Audit; a.GetDuplicates()+a.GetLate()+a.GetUnexpected()+a.GetStale() > 0 {
		fmt.Fprintf(&b, " | dup=%d late=%d unexpected=%d stale=%d", a.Duplicates, a.Late, a.Unexpected, a.Stale)
	}
	if j.Reason != "" {
		fmt.Fprintf(&b, " | reason=%q", j.Reason)
	}
	return b.String()
}

// audit returns the row's counters of what never changes a result.
func (s *step) audit() *codecs.Audit {
	if s.r.Audit == nil {
		s.r.Audit = &codecs.Audit{}
	}
	return s.r.Audit
}

func (s *step) duplicate() { s.audit().Duplicates++ }
func (s *step) late()      { s.audit().Late++ }
