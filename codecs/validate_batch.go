package codecs

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

func (c checker) batchStart(m *BatchStart) {
	c.id("run", m.Run)
	c.oneOf("mode", m.Mode, "ledger", "markers", "count", "credit", "observe")
	if t := m.Topology; t != nil {
		c.in("topology").id("name", t.Name)
	}
	c.atMost("feeders", int(m.Feeders), MaxFeeders)
	c.oneOf("reuse_open", m.ReuseOpen, "reject", "supersede")
	c.oneOf("reuse", m.Reuse, "allow", "reject", "only-after-failure")
	c.policy(m.Policy)
	c.deadlines(m.Deadlines)
	c.oneOf("on_deadline", m.OnDeadline, "expire", "close")
	c.labels(m.Labels)
	if o := m.Owner; o != nil {
		c.in("owner").id("job", o.Job)
		c.in("owner").optionalID("step", o.Step)
	}
	c.notNegative("retention", m.Retention)
	c.subscriptions(m.Notify)
	c.units(m.Units)
	c.atMost("legs", len(m.Legs), MaxLegs)
	for i, l := range m.Legs {
		at := c.in("legs").nth(i)
		at.id("stage", l.GetStage())
		at.topic("topic", l.GetTopic())
	}
	c.optionalID("queue", m.Queue)
}

func (c checker) units(sets []*UnitSet) {
	sum := uint64(0)
	for i, u := range sets {
		at := c.in("units").nth(i)
		at.id("stage", u.GetStage())
		at.topic("topic", u.GetTopic())
		if u.GetPartitions() == 0 {
			at.bad("partitions", "missing")
		}
		sum += uint64(u.GetPartitions())
	}
	if sum > MaxUnits {
		c.bad("units", "more than "+itoa(MaxUnits)+" partitions")
	}
}

func (c checker) batchSeal(m *BatchSeal) {
	c.id("run", m.Run)
	if m.Feeder >= MaxFeeders {
		c.bad("feeder", "feeders are numbered from 0 to at most "+itoa(MaxFeeders-1))
	}
	if n := len(m.Fingerprint); n != 0 && n != 16 {
		c.bad("fingerprint", "not 16 bytes")
	}
}

// plainReport says quickly, and without an allocation, that a report is right; false = not known.
func plainReport(m *BatchReport) bool {
	if !isID(m.Run) || m.Feeder >= MaxFeeders || m.Legs > MaxLegs || len(m.Items) == 0 || len(m.Reporter) > maxText {
		return false
	}
	chunks := 0
	for _, it := range m.Items {
		if it == nil || len(it.Bitmap) > 0 || it.Outcome < 0 || int(it.Outcome) >= len(worst) || it.Leg >= MaxLegs {
			return false
		}
		_, n, err := ItemSize(it)
		if err != nil {
			return false
		}
		chunks += n
	}
	return chunks <= MaxReportChunks && utf8.ValidString(m.Reporter)
}

func (c checker) batchReport(m *BatchReport) {
	c.id("run", m.Run)
	if m.Feeder >= MaxFeeders {
		c.bad("feeder", "feeders are numbered from 0 to at most "+itoa(MaxFeeders-1))
	}
	if m.Legs > MaxLegs {
		c.bad("legs", "more than "+itoa(MaxLegs))
	}
	c.text("reporter", m.Reporter, maxText)
	if len(m.Items) == 0 && m.Children == nil {
		c.bad("items", "missing")
	}
	chunks := 0
	for i, it := range m.Items {
		chunks += c.item(it, i)
	}
	if chunks > MaxReportChunks {
		c.bad("items", "more than "+itoa(MaxReportChunks)+" blocks of 65536 indexes in one report")
	}
}

// item checks one item and returns how many chunks it touches. Reasons of any length pass: a completion is worth more
// than its text.
func (c checker) item(it *ReportItem, i int) (chunks int) {
	if it == nil {
		c.in("items").bad(itoa(i), "missing")
		return 0
	}
	_, chunks, err := ItemSize(it)
	if err == nil && len(it.Bitmap) > 0 {
		err = ForEachRange(it, func(_, _ uint32) {})
	}
	at := c.in("items").nth(i)
	switch {
	case err == nil:
	case len(it.Bitmap) > 0:
		at.bad("bitmap", err.Error())
	default:
		at.bad("last", "smaller than first")
	}
	at.outcome("outcome", it.Outcome)
	if it.Leg >= MaxLegs {
		at.bad("leg", "legs are numbered from 0 to at most "+itoa(MaxLegs-1))
	}
	return chunks
}

func (c checker) batchEnd(m *BatchEnd) {
	c.id("run", m.Run)
	if m.Unit == nil {
		c.bad("unit", "missing")
	} else {
		c.in("unit").id("stage", m.Unit.Stage)
		c.in("unit").topic("topic", m.Unit.Topic)
	}
	if m.Failed > m.Consumed {
		c.bad("failed", "more than consumed")
	}
	for _, t := range slices.Sorted(maps.Keys(m.Produced)) {
		c.in("produced").topic(escapePointer(t), t)
	}
}

var batchVerbs = strings.Fields("cancel pause resume extend policy redrive reevaluate repair gc inconsistent watch")

func (c checker) batchCommand(m *BatchCommand) {
	c.command(m.Id, m.Verb, batchVerbs)
	a := m.Args
	at := c.in("args")
	switch m.Verb {
	case "extend":
		if a.GetDeadlines() == nil && a.GetOnDeadline() == "" {
			at.bad("deadlines", "missing")
		}
	case "policy":
		if a.GetPolicy() == nil && a.GetWindow() == 0 {
			at.bad("policy", "missing")
		}
	}
	if a == nil {
		return
	}
	at.optionalID("run", a.Run)
	at.deadlines(a.Deadlines)
	at.oneOf("on_deadline", a.OnDeadline, "expire", "close")
	at.policy(a.Policy)
	for i, o := range a.Outcomes {
		if o == "" {
			at.in("outcomes").bad(itoa(i), "empty")
		}
		at.in("outcomes").oneOf(itoa(i), o, "failed", "timed_out", "lost", "cancelled", "skipped", "ok")
	}
}

func (c checker) command(id, verb string, verbs []string) {
	if id == "" {
		c.bad("id", "missing")
	}
	c.text("id", id, MaxCommandID)
	if verb == "" {
		c.bad("verb", "missing")
	}
	c.oneOf("verb", verb, verbs...)
}
