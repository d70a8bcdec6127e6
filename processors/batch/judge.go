package batch

import (
	"strconv"
	"strings"

	"github.com/quiesce/quiesce/codecs"
)

// Counts of tasks. Of a sealed batch: total = the sum of all others.
func (r *Row) Counts() *codecs.Counts {
	c := &codecs.Counts{Total: r.p.Total}
	if r.tasks == nil {
		return c
	}
	n := func(o codecs.Outcome_Code) uint32 { return uint32(r.tasks[o].GetCardinality()) }
	c.Ok, c.Failed, c.Skipped, c.Cancelled = n(codecs.OK), n(codecs.Failed), n(codecs.Skipped), n(codecs.Cancelled)
	c.TimedOut, c.Lost, c.Unknown = n(codecs.TimedOut), n(codecs.Lost), n(codecs.Unknown)
	c.Running = uint32(r.running.GetCardinality())
	if done := ended(c) + c.Running; r.sealed() && r.p.Total > done {
		c.Pending = r.p.Total - done
	}
	return c
}

func ended(c *codecs.Counts) uint32 {
	return c.Ok + c.Failed + c.Skipped + c.Cancelled + c.TimedOut + c.Lost + c.Unknown
}

func failures(c *codecs.Counts) uint32 { return c.Failed + c.TimedOut + c.Lost }

// attempted says that every task has been: in the mode ledger each has an outcome, in markers each unit has reported.
func (r *Row) attempted() bool {
	if !r.sealed() {
		return false
	}
	if r.p.Mode == modeLedger {
		return r.settled() == uint64(r.p.Total)
	}
	if len(r.p.Units) == 0 {
		return r.p.Total == 0
	}
	for i, u := range r.p.Units {
		if r.units[i].GetCardinality() < uint64(u.Set.Partitions) {
			return false
		}
	}
	return true
}

// settled counts the tasks that have an outcome on every leg.
func (r *Row) settled() (n uint64) {
	if len(r.legs) == 1 {
		return r.legs[0].all.GetCardinality()
	}
	for _, set := range r.tasks {
		n += set.GetCardinality()
	}
	return n
}

// judge ends the batch when it is time.
func (s *step) judge() {
	if s.p.Paused {
		return
	}
	all := s.attempted()
	if s.p.Policy != nil {
		if reason := s.broken(s.Counts(), all); reason != "" {
			s.closeOpen(codecs.Cancelled)
			s.end(codecs.State_failed, reason)
			return
		}
	}
	if !all {
		return
	}
	s.fillUnknown()
	c := s.Counts()
	s.emit(codecs.TypeBatchAttempted, "")
	if failures(c) > 0 {
		s.end(codecs.State_completed_with_failures, "")
		return
	}
	s.end(codecs.State_completed, "")
}

// fillUnknown gives the tasks that only the units speak for the outcome unknown.
func (s *step) fillUnknown() {
	if s.p.Mode != modeLedger {
		s.closeOpen(codecs.Unknown)
	}
}

// closeOpen gives every task without outcome this one.
func (s *step) closeOpen(o codecs.Outcome_Code) {
	s.running.Clear()
	if !s.sealed() {
		return
	}
	for i := range s.legs {
		l := &s.legs[i]
		open := l.all.Clone()
		open.Flip(0, uint64(s.p.Total))
		l.by.of(o).Or(open)
		l.all.Or(open)
		if len(s.legs) > 1 {
			s.settle(open)
		}
	}
}

// broken says why the failure policy ends the batch, "" if it does not.
func (s *step) broken(c *codecs.Counts, all bool) string {
	p, bad := s.p.Policy, failures(c)
	switch p.Kind {
	case "fail_fast":
		if bad > 0 {
			return "policy fail_fast: a task failed"
		}
	case "tolerate":
		share, percent := strings.CutSuffix(p.Tolerate, "%")
		if !percent {
			if n, err := strconv.ParseUint(p.Tolerate, 10, 32); err == nil && uint64(bad) > n {
				return "policy tolerate " + p.Tolerate + ": " + strconv.FormatUint(uint64(bad), 10) + " failures"
			}
			return ""
		}
		limit, err := strconv.ParseFloat(share, 64)
		of := ended(c)
		if of < p.MinSample {
			if !all {
				return ""
			}
			of = s.p.Total
		}
		if err == nil && float64(bad)*100 > limit*float64(of) {
			return "policy tolerate " + p.Tolerate + ": " + strconv.FormatUint(uint64(bad), 10) + " failures of " + strconv.FormatUint(uint64(of), 10)
		}
	}
	return ""
}
