package job

import (
	"slices"

	"github.com/quiesce/quiesce/codecs"
)

// Verbs between a job's row and the row of its customer.
const (
	ask     = "ask"
	admit   = "admit"
	release = "release"
	refuse  = "refuse"
)

// toCustomer sends an admission verb to the customer's row, on the same partition.
func (s *step) toCustomer(verb string) {
	customer, _ := jobOf(s.r.Key)
	s.emit(codecs.Message{Topic: codecs.TopicJobs, Key: customer, Type: codecs.TypeJobAdmission, Due: true,
		Data: &codecs.JobAdmission{Job: s.r.Job, Verb: verb, Priority: s.r.Priority}})
}

// admitted takes the customer's answer.
func (s *step) admitted(d *codecs.JobAdmission) {
	if !s.r.AwaitsSlot {
		s.duplicate()
		if ended(s.r.State) { // it ended while it waited: give the slot back
			s.toCustomer(release)
		}
		return
	}
	s.r.AwaitsSlot = false
	if d.Verb == refuse {
		s.stopSteps(codecs.StepState_cancelled, "too many jobs of the customer wait")
		s.end(codecs.JobState_failed, "too many jobs of the customer wait")
		return
	}
	s.advance()
}

// admission counts the running jobs of a customer and admits waiting ones by priority, then in the order they asked.
func (m *Machine) admission(row *Row, d *codecs.JobAdmission, out []codecs.Message) []codecs.Message {
	if row.Customer == nil {
		row.Customer = &codecs.CustomerRow{Format: rowFormat, Customer: row.key}
	}
	c := row.Customer
	c.Running = slices.DeleteFunc(c.Running, func(j string) bool { return d.Verb == release && j == d.Job })
	c.Waiting = slices.DeleteFunc(c.Waiting, func(w *codecs.WaitingJob) bool { return w.Job == d.Job })
	if d.Verb == ask && !slices.Contains(c.Running, d.Job) {
		i, _ := slices.BinarySearchFunc(c.Waiting, d.Priority, func(w *codecs.WaitingJob, p uint32) int {
			if w.Priority >= p {
				return -1
			}
			return 1
		})
		c.Waiting = slices.Insert(c.Waiting, i, &codecs.WaitingJob{Job: d.Job, Priority: d.Priority})
	}
	for len(c.Waiting) > 0 && (m.perCust == 0 || len(c.Running) < m.perCust) {
		w := c.Waiting[0]
		c.Waiting = c.Waiting[1:]
		c.Running = append(c.Running, w.Job)
		out = append(out, codecs.Message{Topic: codecs.TopicJobs, Key: c.Customer + "\x00" + w.Job, Type: codecs.TypeJobAdmission,
			Due: true, Data: &codecs.JobAdmission{Job: w.Job, Verb: admit}})
	}
	if n := len(c.Waiting); n > maxWaiting { // the last in line is told to give up, in its own row
		w := c.Waiting[n-1]
		c.Waiting = c.Waiting[:n-1]
		out = append(out, codecs.Message{Topic: codecs.TopicJobs, Key: c.Customer + "\x00" + w.Job, Type: codecs.TypeJobAdmission,
			Due: true, Data: &codecs.JobAdmission{Job: w.Job, Verb: refuse}})
	}
	return out
}
