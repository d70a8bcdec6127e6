package batch

import (
	"slices"
	"strconv"
	"strings"

	"github.com/quiesce/quiesce/codecs"
)

func (w *twin) command(d *codecs.BatchCommand) {
	if w.answered[d.Id] {
		w.audit.Duplicates++
		return
	}
	w.answered[d.Id] = true
	if w.orders = append(w.orders, d.Id); len(w.orders) > maxAnswers {
		delete(w.answered, w.orders[0])
		w.orders = w.orders[1:]
	}
	u := w.run
	if u == nil || u.start == nil || d.Args.GetRun() != "" && d.Args.GetRun() != u.id {
		return
	}
	if !w.obey(u, d) {
		return
	}
	w.version++
	w.evaluate()
}

// obey does what a command says; false = refused.
func (w *twin) obey(u *twinRun, d *codecs.BatchCommand) bool {
	switch d.Verb {
	case "cancel":
		if !u.open {
			return false
		}
		w.end(codecs.State_cancelled, codecs.Cancelled)
	case "pause", "resume":
		if !u.open {
			return false
		}
		if u.paused && d.Verb == "resume" {
			u.progress = w.now
		}
		u.paused = d.Verb == "pause"
	case "extend":
		if !u.open {
			return false
		}
		if a := d.Args.OnDeadline; a != "" {
			u.start.OnDeadline = a
		}
		if a := d.Args.Deadlines; a != nil {
			if a = absolute(a, w.now); a.SealBy > 0 {
				u.deadlines.SealBy = a.SealBy
			}
			if a.CompleteBy > 0 {
				u.deadlines.CompleteBy = a.CompleteBy
			}
			if a.NoProgressFor > 0 {
				u.deadlines.NoProgressFor = a.NoProgressFor
			}
		}
	case "policy":
		if !u.open {
			return false
		}
		if d.Args.Policy != nil {
			u.policy = d.Args.Policy
		}
	case "redrive":
		return w.redrive(u, d.Args.GetDeadlines())
	case "reevaluate":
		if u.state != codecs.State_inconsistent {
			return u.open
		}
		if len(u.causes) > 0 {
			return false
		}
		w.reopen(u)
	case "gc":
		if u.open || u.state == codecs.State_collected {
			return false
		}
		w.collect(u)
	case "inconsistent":
		if d.Args.GetDifference() == "" {
			u.causes = slices.DeleteFunc(u.causes, func(c string) bool { return strings.HasPrefix(c, "watchdog") })
		} else {
			w.contradict("watchdog" + d.Args.Difference)
		}
	}
	return true
}

func (w *twin) redrive(u *twinRun, d *codecs.Deadlines) bool {
	settled := uint32(0)
	for _, o := range u.outcomes() {
		if o == codecs.OK || o == codecs.Skipped || o == codecs.Unknown {
			settled++
		}
	}
	if u.open || u.state == codecs.State_collected || u.state == codecs.State_inconsistent || !u.isSealed() ||
		u.start.Mode == modeMarkers || u.state == codecs.State_completed && settled >= u.total() {
		return false
	}
	w.reopen(u)
	if d != nil {
		u.deadlines = absolute(d, w.now)
	}
	return true
}

func (w *twin) reopen(u *twinRun) {
	u.was, u.state = u.state, codecs.State_sealed
	if !u.isSealed() {
		u.state = codecs.State_open
	}
	u.round++
	u.open, u.closedAs, u.progress, u.endedAt = true, codecs.Outcome_unspecified, w.now, 0
	clear(u.ends)
	clear(u.running)
	for k, o := range u.said {
		if o == codecs.Failed || o == codecs.TimedOut || o == codecs.Lost || o == codecs.Cancelled {
			delete(u.said, k)
		}
	}
	if u.deadlines.CompleteBy <= w.now {
		u.deadlines.CompleteBy = 0
	}
	if u.deadlines.SealBy <= w.now {
		u.deadlines.SealBy = 0
	}
}

// evaluate looks whether the batch has ended.
func (w *twin) evaluate() {
	u := w.run
	if u == nil || u.start == nil || !u.open || u.paused {
		return
	}
	done := u.outcomes()
	failures, attempted := uint32(0), uint32(0)
	for _, o := range done {
		switch o {
		case codecs.Failed, codecs.TimedOut, codecs.Lost:
			failures++
			attempted++
		case codecs.OK, codecs.Unknown:
			attempted++
		}
	}
	if u.violated(failures, attempted, false) {
		w.end(codecs.State_failed, codecs.Cancelled)
		return
	}
	if !u.isSealed() {
		return
	}
	if u.start.Mode == modeMarkers {
		if len(u.ends) < u.units() {
			return
		}
		failures = u.counts().Failed
	} else if uint32(len(done)) < u.total() {
		return
	}
	c := u.counts()
	switch {
	case u.violated(failures, attempted, true):
		w.end(codecs.State_failed, codecs.Outcome_unspecified)
	case c.Failed+c.TimedOut+c.Lost > 0:
		w.end(codecs.State_completed_with_failures, codecs.Outcome_unspecified)
	default:
		w.end(codecs.State_completed, codecs.Outcome_unspecified)
	}
}

func (u *twinRun) violated(failures, attempted uint32, atEnd bool) bool {
	p := u.policy
	switch {
	case failures == 0 || p == nil || p.Kind == "" || p.Kind == "continue":
		return false
	case p.Kind == "fail_fast":
		return true
	}
	if n, ok := strings.CutSuffix(p.Tolerate, "%"); ok {
		percent, _ := strconv.ParseFloat(n, 64)
		if attempted < p.MinSample {
			if !atEnd {
				return false
			}
			attempted = u.total()
		}
		return float64(failures) > percent/100*float64(attempted)+1e-9
	}
	n, _ := strconv.Atoi(p.Tolerate)
	return failures > uint32(n)
}
