package batch

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

// start opens a run, or is a duplicate of the START that did.
func (s *step) start(d *codecs.BatchStart) {
	r := s.r
	if reason := startFault(d); reason != "" {
		s.refuseStart(d, reason)
		return
	}
	if l := r.life(d.Run, s.off); l != nil && l.Start != nil {
		s.audit().Duplicates++
		return
	}
	if slices.Contains(r.Past, d.Run) {
		s.audit().Stale++
		return
	}
	if r.run != nil && r.run.Run == d.Run && r.run.State == codecs.State_collected {
		s.refuseStart(d, fmt.Sprintf("run %s had no START for so long that its reports were forgotten: start another run", d.Run))
		return
	}
	if r.run != nil && r.run.Run != d.Run && r.run.Start != nil {
		if reason := s.reuse(d); reason != "" {
			s.refuseStart(d, reason)
			return
		}
	}
	l := s.begin(d.Run)
	s.open(l, clone(d))
}

// refuseStart rejects a START; the job that it is for hears of it, or it would wait for ever.
func (s *step) refuseStart(d *codecs.BatchStart, reason string) {
	s.reject(reason)
	if o := d.Owner; o.GetJob() != "" {
		s.out = append(s.out, codecs.Message{Topic: codecs.TopicJobs, Key: clip(ownerKey(o)), Type: codecs.TypeBatchEnded, Due: true, Trace: s.ev.Traceparent,
			Data: &codecs.BatchEnded{Batch: s.r.Batch, Run: d.Run, Step: o.Step, Refused: clip(reason)}})
	}
}

// startFault says why a START cannot be honoured; field values were checked when the record was decoded.
func startFault(d *codecs.BatchStart) string {
	switch d.Mode {
	case "", modeLedger:
		if len(d.Legs) > codecs.MaxLegs {
			return fmt.Sprintf("/legs: %d, at most %d", len(d.Legs), codecs.MaxLegs)
		}
	case modeMarkers:
		if len(d.Units) == 0 {
			return "/units: a batch in mode markers names the units that report END"
		}
		named := map[string]bool{}
		for _, u := range d.Units {
			if name := u.Stage + "/" + u.Topic; named[name] {
				return "/units: " + name + " twice"
			} else {
				named[name] = true
			}
		}
	default:
		return fmt.Sprintf("/mode: %s is not built into this release: ledger or markers", d.Mode)
	}
	if n := proto.Size(d); n > startRoom {
		return fmt.Sprintf("a START of %d bytes: at most %d", n, startRoom)
	}
	if d.Feeders > codecs.MaxFeeders {
		return fmt.Sprintf("/feeders: %d, at most %d", d.Feeders, codecs.MaxFeeders)
	}
	if d.Queue != "" && (d.Feeders > 1 || len(d.Legs) > 1) {
		return "/queue: a queue batch has one feeder and one leg"
	}
	if d.OpenChildren && (d.Feeders > 1 || d.Mode == modeMarkers) {
		return "/open_children: for one feeder in mode ledger"
	}
	return ""
}

// reuse ends the run that holds the id, or says why it cannot be used again.
func (s *step) reuse(d *codecs.BatchStart) string {
	old := s.r.run
	if !old.State.Terminal() {
		if d.ReuseOpen != "supersede" {
			return fmt.Sprintf("run %s is %s: a batch id can be used again after its end", old.Run, old.State)
		}
		s.finish(codecs.State_cancelled, codecs.Cancelled, "superseded by run "+d.Run)
		return ""
	}
	end := old.State
	if end == codecs.State_collected {
		end = old.PreviousState
	}
	switch {
	case d.Reuse == "reject":
		return fmt.Sprintf("run %s has ended: this START refuses to use the id again", old.Run)
	case d.Reuse == "only-after-failure" && end == codecs.State_completed:
		return fmt.Sprintf("run %s completed: this START uses the id again only after a failure", old.Run)
	}
	return ""
}

// begin returns the life of a run as the current one: adopted from parked reports, or new.
func (s *step) begin(run string) *life {
	r := s.r
	l := r.life(run, s.off)
	if l == r.run && l != nil {
		return l // its reports came first
	}
	if old := r.run; old != nil {
		s.out = s.m.Cut(r, s.out) // what it tells is of the old run
		r.retire(old)
	}
	if l == nil {
		l = newRun(run, s.off)
	} else {
		r.park(nil)
	}
	r.adopt(l)
	return l
}

func newRun(run string, off int64) *life {
	return newLife(&codecs.RunRow{Run: strings.Clone(run), State: codecs.State_orphan, First: off,
		Rounds: []*codecs.RoundRow{{Start: off, End: -1}}})
}

// open turns a life into an open batch.
func (s *step) open(l *life, d *codecs.BatchStart) {
	now := s.r.Now
	if d.Mode == "" {
		d.Mode = modeLedger
	}
	l.Start, l.State, l.StartedAt, l.LastProgress, l.StartedOffset = d, codecs.State_open, now, now, s.off
	l.Policy, l.Window = d.Policy, d.Window
	l.Feeders = make([]*codecs.FeederRow, max(d.Feeders, 1))
	for i := range l.Feeders {
		l.Feeders[i] = &codecs.FeederRow{}
	}
	l.Deadlines = absolute(d.Deadlines, now)
	s.disown(l)
	s.r.Version++
	s.event(codecs.TypeBatchStarted, "")
	if l.ParkedLegs > 0 && l.ParkedLegs != l.pinnedLegs() {
		s.contradict(fmt.Sprintf("reports before START speak of %d legs, START of %d", l.ParkedLegs, l.pinnedLegs()))
		return
	}
	if l.FullAt > 0 {
		s.contradict(fmt.Sprintf("reports before START name more than %d blocks of %d tasks", s.m.rooms.parked, codecs.ChunkSize))
		return
	}
	if l.Parked > 0 && d.OpenChildren {
		s.contradict("reports came before START of a batch whose tasks may add tasks")
		return
	}
	s.evaluate()
}

// disown makes reports of feeders that START does not know count nothing: they are no tasks.
func (s *step) disown(l *life) {
	for id, c := range l.chunks {
		if id>>16 >= uint32(len(l.Feeders)) {
			if n := c.ended(); n > 0 {
				s.audit().Unexpected += uint64(n)
			}
			l.set(id, counts{})
		}
	}
}

// absolute turns durations that count from START into times.
func absolute(d *codecs.Deadlines, now int64) *codecs.Deadlines {
	out := &codecs.Deadlines{SealBy: d.GetSealBy(), CompleteBy: d.GetCompleteBy(), NoProgressFor: d.GetNoProgressFor()}
	sooner := func(at *int64, within int64) {
		if within > 0 && (*at == 0 || now+within < *at) {
			*at = now + within
		}
	}
	sooner(&out.SealBy, d.GetSealWithin())
	sooner(&out.CompleteBy, d.GetCompleteWithin())
	return out
}

// clone copies data out of the record that it shares memory with.
func clone[M proto.Message](m M) M { return proto.Clone(m).(M) }
