package job

import (
	"fmt"

	"github.com/quiesce/quiesce/codecs"
)

// Jobs have no part rows.

// NewPart is never called: Parts is empty.
func (m *Machine) NewPart(key string) codecs.Row { return m.NewRow(key) }

// LoadPart is never called for a table that this machine wrote.
func (m *Machine) LoadPart(key string, _ []byte) (codecs.Row, error) {
	return nil, fmt.Errorf("job row %q: jobs have no parts", key)
}

// Parts is empty.
func (m *Machine) Parts(codecs.Row, int64, *codecs.Event) []string { return nil }

// StepPart is never called.
func (m *Machine) StepPart(codecs.Row, int64, *codecs.Event) {}

// Status is empty: jobs have no record in the status topic.
func (m *Machine) Status(codecs.Row, bool) (codecs.Message, bool) { return codecs.Message{}, false }

// Step applies one event to a row.
func (m *Machine) Step(cr codecs.Row, _ []codecs.Row, off int64, ev *codecs.Event, out []codecs.Message) []codecs.Message {
	row := cr.(*Row)
	if a, ok := ev.Data.(*codecs.JobAdmission); ok && a.Verb != admit && a.Verb != refuse {
		if row.Job != nil { // an id that is a customer's and a job's: refused, visibly
			return append(out, deadLetter(ev, off, "admission on the row of a job"))
		}
		return m.admission(row, a, out)
	}
	if row.Customer != nil {
		return append(out, deadLetter(ev, off, "this key is the row of a customer"))
	}
	if row.Job == nil {
		if _, ok := ev.Data.(*codecs.JobRequested); !ok {
			return m.unknownJob(row, off, ev, out)
		}
		row.Job = &codecs.JobRow{Format: rowFormat, Behaviour: behaviour, Key: row.key}
		_, row.Job.Job = jobOf(row.key)
	}
	s := &step{m: m, r: row.Job, off: off, ev: ev, out: out}
	s.apply()
	if s.r.Job == "" || s.r.Definition == nil { // a request that was refused leaves no row
		row.Job = nil
	}
	return s.out
}

// unknownJob answers events for a job that has no row: late results of collected jobs are dropped into the dead letter,
// where they can be read; a nudge is nothing.
func (m *Machine) unknownJob(row *Row, off int64, ev *codecs.Event, out []codecs.Message) []codecs.Message {
	switch d := ev.Data.(type) {
	case *codecs.JobCommand:
		if d.Verb == verbWatch && d.Args.GetReason() != "" {
			return append(out, codecs.Message{Topic: codecs.TopicJobs, Key: d.Args.Reason, Type: codecs.TypeJobEnded, Due: true,
				Data: &codecs.JobEnded{Job: row.key}})
		}
	case *codecs.JobNudge, *codecs.JobAdmission, *codecs.JobEnded, *codecs.BatchEnded:
		return out
	}
	return append(out, deadLetter(ev, off, "no such job: "+printable(row.key)))
}

// Deadline is when the row wants a nudge, ms since the epoch; 0 = never.
func (m *Machine) Deadline(row codecs.Row) int64 {
	j := row.(*Row).Job
	if j == nil {
		return 0
	}
	if j.State == codecs.JobState_collected {
		return 0
	}
	if ended(j.State) {
		return j.EndedAt + m.retentionOf(j)
	}
	at := j.CompleteBy
	for i, st := range j.Steps {
		if by := splitBy(j, i); st.State == codecs.StepState_splitting && by > 0 && (at == 0 || by < at) {
			at = by
		}
	}
	return at
}

// Nudge makes the machine look at a row's deadlines.
func (m *Machine) Nudge(key string) codecs.Message {
	return codecs.Message{Topic: codecs.TopicJobs, Key: key, Type: codecs.TypeJobNudge, Data: &codecs.JobNudge{}}
}

// Collect says that the row itself may go once it is collected; jobs have no part rows.
func (m *Machine) Collect(cr codecs.Row) (parts []string, self bool) {
	row := cr.(*Row)
	empty := row.Job == nil && (row.Customer == nil || len(row.Customer.Running)+len(row.Customer.Waiting) == 0)
	return nil, empty || row.Job != nil && row.Job.State == codecs.JobState_collected
}

// Repairs says whether the event lifts a quarantine.
func (m *Machine) Repairs(ev *codecs.Event) bool {
	c, ok := ev.Data.(*codecs.JobCommand)
	return ok && c.Verb == "repair"
}

func (m *Machine) retentionOf(j *codecs.JobRow) int64 {
	if r := j.Definition.GetRetention(); r > 0 {
		return r
	}
	return m.retention
}
