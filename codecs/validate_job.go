package codecs

import "strings"

var jobVerbs = strings.Fields("cancel pause resume redrive extend policy window reevaluate repair gc watch")

func (c checker) jobRequested(m *JobRequested) {
	c.id("type", m.Type)
	c.optionalID("customer", m.Customer)
	c.labels(m.Labels)
	c.subscriptions(m.Notify)
	for i, b := range m.AwaitBatches {
		c.in("await_batches").id(itoa(i), b)
	}
	for i, j := range m.AwaitJobs {
		c.in("await_jobs").id(itoa(i), j)
	}
}

func (c checker) jobCommand(m *JobCommand) {
	c.command(m.Id, m.Verb, jobVerbs)
	if a := m.Args; a != nil {
		at := c.in("args")
		at.optionalID("step", a.Step)
		at.deadlines(a.Deadlines)
		at.policy(a.Policy)
	}
}

func (c checker) taskCompleted(m *TaskCompleted) {
	c.id("step", m.Step)
	c.outcome("outcome", m.Outcome)
	if m.Outcome == Outcome_unspecified {
		c.bad("outcome", "missing")
	}
	c.text("reporter", m.Reporter, maxText)
}

func (c checker) splitProposed(m *SplitProposed) {
	c.id("step", m.Step)
	if n := len(m.Digest); n != 0 && n != 32 {
		c.bad("digest", "not 32 bytes")
	}
	c.text("reporter", m.Reporter, maxText)
}
