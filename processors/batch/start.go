package batch

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

// Bounds of what a row remembers of other runs.
const (
	maxPastRuns     = 16
	defaultMaxTotal = 10_000_000
)

// Words of START.
const (
	modeLedger       = "ledger"
	modeMarkers      = "markers"
	supersede        = "supersede"
	reuseReject      = "reject"
	onlyAfterFailure = "only-after-failure"
	closeAtDeadline  = "close"
)

// start begins a run, unless the reuse policy forbids it. The same START again changes nothing.
func (s *step) start(d *codecs.BatchStart) {
	switch {
	case d.Run == s.p.Run:
		s.audit().Duplicates++
		return
	case slices.Contains(s.p.PastRuns, d.Run):
		s.audit().Stale++
		return
	case s.active() && d.ReuseOpen != supersede, s.p.Run != "" && !s.active() && !s.mayFollow(d.Reuse):
		s.audit().Unexpected++
		return
	}
	if s.active() {
		s.end(codecs.State_cancelled, "superseded by run "+d.Run)
	}
	old := s.p
	past := old.PastRuns
	if old.Run != "" {
		past = append(past, old.Run)
	}
	if len(past) > maxPastRuns {
		past = past[len(past)-maxPastRuns:]
	}
	s.p = begun(d, old.Now)
	s.p.Version, s.p.PastRuns, s.p.Parked = old.Version, past, old.Parked
	s.begin()
	s.emit(codecs.TypeBatchStarted, "")
	if s.p.Feeders > 1 && s.p.Mode == modeLedger {
		// Each feeder numbers its tasks from 0: one set cannot hold them all.
		s.end(codecs.State_inconsistent, "mode ledger takes one feeder")
		return
	}
	s.takeParked()
}

// mayFollow applies the reuse policy to a run that comes after an ended one.
func (s *step) mayFollow(reuse string) bool {
	good := s.p.State == codecs.State_completed || s.p.State == codecs.State_completed_with_failures
	return reuse != reuseReject && !(reuse == onlyAfterFailure && good)
}

// begun is the row of a run that has just started.
func begun(d *codecs.BatchStart, now int64) *codecs.BatchRow {
	p := &codecs.BatchRow{Run: d.Run, State: codecs.State_open, Mode: d.Mode, Topology: d.Topology, Round: 1, Feeders: max(1, d.Feeders),
		MaxTotal: d.MaxTotal, Legs: d.Legs, Policy: d.Policy, OnDeadline: d.OnDeadline, Labels: d.Labels, Owner: d.Owner, Notify: d.Notify,
		Retention: d.Retention, Queue: d.Queue, Window: d.Window, Now: now, StartedAt: now, LastProgressAt: now, ProgressAt: now}
	if p.Mode == "" {
		p.Mode = modeLedger
	}
	if p.MaxTotal == 0 {
		p.MaxTotal = defaultMaxTotal
	}
	for _, u := range d.Units {
		p.Units = append(p.Units, &codecs.UnitReports{Set: u})
	}
	if d.Deadlines != nil {
		p.Deadlines = proto.Clone(d.Deadlines).(*codecs.Deadlines)
		if w := p.Deadlines.SealWithin; w > 0 {
			p.Deadlines.SealBy = now + w
		}
		if w := p.Deadlines.CompleteWithin; w > 0 {
			p.Deadlines.CompleteBy = now + w
		}
		p.Deadlines.SealWithin, p.Deadlines.CompleteWithin = 0, 0
	}
	return p
}

// seal notes how many tasks one feeder has.
func (s *step) seal(d *codecs.BatchSeal) {
	if d.Run != s.p.Run {
		s.audit().Stale++
		return
	}
	if !s.active() {
		s.audit().Late++
		return
	}
	for _, had := range s.p.Seals {
		if had.Feeder == d.Feeder {
			if had.Total != d.Total {
				s.end(codecs.State_inconsistent, "a feeder sealed twice with different totals")
			}
			return
		}
	}
	if d.Feeder >= s.p.Feeders {
		s.audit().Unexpected++
		return
	}
	s.p.Seals = append(s.p.Seals, &codecs.FeederSeal{Feeder: d.Feeder, Total: d.Total, PayloadDigest: d.PayloadDigest})
	s.p.Chunks = append(s.p.Chunks, d.Chunks...)
	s.p.LastProgressAt = s.p.Now
	if uint32(len(s.p.Seals)) < s.p.Feeders {
		return
	}
	total := uint64(0)
	for _, f := range s.p.Seals {
		total += uint64(f.Total)
	}
	if total > uint64(s.p.MaxTotal) {
		s.end(codecs.State_inconsistent, "more tasks than max_total")
		return
	}
	s.p.Total, s.p.State, s.p.SealedAt = uint32(total), codecs.State_sealed, s.p.Now
	s.dropAbove(s.p.Total)
	s.emit(codecs.TypeBatchSealed, "")
}

// sealed says that the number of tasks is known.
func (r *Row) sealed() bool { return r.p.Run != "" && uint32(len(r.p.Seals)) == r.p.Feeders }
