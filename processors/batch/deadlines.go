package batch

import "github.com/quiesce/quiesce/codecs"

// defaultRetention is the time in ms from the end to collection.
const defaultRetention = 7 * 24 * 3600 * 1000

// deadline is the first of the row's deadlines, in ms; 0 = none. After the end it is the time of collection.
func (r *Row) deadline() int64 {
	if r.p.State == codecs.State_collected {
		return 0
	}
	if r.p.Run == "" { // an orphan
		if r.p.StartedAt == 0 {
			return 0
		}
		return r.p.StartedAt + defaultRetention
	}
	if !r.active() {
		return r.p.EndedAt + r.retention()
	}
	d := r.p.Deadlines
	first := int64(0)
	add := func(t int64) {
		if t > 0 && (first == 0 || t < first) {
			first = t
		}
	}
	if !r.sealed() {
		add(d.GetSealBy())
	}
	add(d.GetCompleteBy())
	if w := d.GetNoProgressFor(); w > 0 {
		add(r.p.LastProgressAt + w)
	}
	return first
}

func (r *Row) retention() int64 {
	if r.p.Retention > 0 {
		return r.p.Retention
	}
	return defaultRetention
}

// checkDeadlines ends the batch when one has passed, unless all its tasks have been attempted by now.
func (s *step) checkDeadlines() {
	at := s.deadline()
	if at == 0 || s.p.Now < at || s.attempted() && !s.p.Paused {
		return
	}
	reason := "complete-by has passed"
	d := s.p.Deadlines
	switch {
	case !s.sealed() && at == d.GetSealBy():
		reason = "seal-by has passed: the number of tasks is not known"
	case d.GetNoProgressFor() > 0 && at == s.p.LastProgressAt+d.GetNoProgressFor():
		reason = "no progress for too long"
	}
	if s.p.OnDeadline == closeAtDeadline && s.sealed() {
		s.closeOpen(codecs.TimedOut)
		s.end(codecs.State_completed_with_failures, reason)
		return
	}
	s.end(codecs.State_expired, reason)
}

// collect turns an ended batch, or an orphan, into a small marker that may be deleted.
func (s *step) collect() {
	s.p = &codecs.BatchRow{Version: s.p.Version, Run: s.p.Run, State: codecs.State_collected, Round: s.p.Round, PastRuns: s.p.PastRuns, Now: s.p.Now}
	s.begin()
}
