package batch

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

// maxAnswers is how many answers to commands a row keeps.
const maxAnswers = 32

const verbRepair = "repair"

// command acts once for each id and keeps its answer.
func (s *step) command(d *codecs.BatchCommand) {
	for _, a := range s.p.Answers {
		if a.Id == d.Id {
			return
		}
	}
	reason := ""
	switch run := d.Args.GetRun(); {
	case s.p.Run == "":
		reason = "the batch has not started"
	case run != "" && run != s.p.Run:
		reason = "the current run is " + s.p.Run
	case d.Expect != 0 && d.Expect != s.p.Version:
		reason = "the batch has another version"
	default:
		reason = s.act(d)
	}
	s.p.Answers = append(s.p.Answers, &codecs.CommandAnswer{Id: d.Id, Verb: d.Verb, Applied: reason == "", Reason: reason, At: s.p.Now})
	if n := len(s.p.Answers); n > maxAnswers {
		s.p.Answers = s.p.Answers[n-maxAnswers:]
	}
}

// act does what the verb says; a text is why it has no effect.
func (s *step) act(d *codecs.BatchCommand) string {
	args := d.Args
	switch d.Verb {
	case verbRepair, "reevaluate":
		return "" // judged after every event
	case "redrive":
		return s.redrive(args)
	case "gc":
		if s.active() {
			return "the batch has not ended"
		}
		s.collect()
		return ""
	case "watch":
		s.watch(args.GetWatcher())
		return ""
	}
	if !s.active() {
		return "the batch is " + s.p.State.String()
	}
	switch d.Verb {
	case "cancel":
		s.closeOpen(codecs.Cancelled)
		s.end(codecs.State_cancelled, args.GetReason())
	case "pause":
		s.p.Paused = true
	case "resume":
		s.p.Paused = false
	case "extend":
		return s.extend(args)
	case "policy":
		if args.GetPolicy() == nil {
			return "no policy"
		}
		s.p.Policy = args.Policy
	case "window":
		s.p.Window = args.GetWindow()
	case "inconsistent":
		s.end(codecs.State_inconsistent, args.GetDifference())
	default:
		return "unknown verb " + d.Verb
	}
	return ""
}

// extend sets the deadlines that are named; the others stay.
func (s *step) extend(args *codecs.CommandArgs) string {
	d := args.GetDeadlines()
	if d == nil && args.GetOnDeadline() == "" {
		return "no deadline"
	}
	next := &codecs.Deadlines{} // a new value: messages may still point to the old one
	if s.p.Deadlines != nil {
		next = proto.Clone(s.p.Deadlines).(*codecs.Deadlines)
	}
	s.p.Deadlines = next
	set := func(field *int64, v int64) {
		if v != 0 {
			*field = v
		}
	}
	set(&s.p.Deadlines.SealBy, d.GetSealBy())
	set(&s.p.Deadlines.CompleteBy, d.GetCompleteBy())
	set(&s.p.Deadlines.NoProgressFor, d.GetNoProgressFor())
	if o := args.GetOnDeadline(); o != "" {
		s.p.OnDeadline = o
	}
	return ""
}

// redrive opens the next round: tasks with these outcomes become pending again.
func (s *step) redrive(args *codecs.CommandArgs) string {
	switch {
	case s.active():
		return "the batch has not ended"
	case s.p.State == codecs.State_inconsistent || s.p.State == codecs.State_collected:
		return "the run is " + s.p.State.String()
	case !s.sealed():
		return "the number of tasks is not known"
	case s.p.Mode != modeLedger:
		return "mode " + s.p.Mode + " does not know which tasks failed"
	}
	names := args.GetOutcomes()
	opened := uint64(0)
	for _, o := range []codecs.Outcome_Code{codecs.Failed, codecs.TimedOut, codecs.Lost, codecs.Cancelled} {
		if len(names) > 0 && !slices.Contains(names, o.String()) {
			continue
		}
		opened += s.tasks[o].GetCardinality()
		again := s.tasks[o].Clone()
		for i := range s.legs {
			s.legs[i].all.AndNot(again)
			s.legs[i].by.each(func(set *roaring.Bitmap) { set.AndNot(again) })
		}
		s.tasks.of(o).Clear()
	}
	if opened == 0 && s.attempted() {
		return "no task has such an outcome"
	}
	s.p.PreviousState, s.p.State = s.p.State, codecs.State_sealed
	s.p.Round++
	s.p.FirstFailure, s.p.EndedAt, s.p.Reason, s.p.LastProgressAt = false, 0, "", s.p.Now
	if d := s.p.Deadlines; d != nil && d.CompleteBy > 0 && d.CompleteBy <= s.p.Now {
		s.p.Deadlines = proto.Clone(d).(*codecs.Deadlines)
		s.p.Deadlines.CompleteBy = 0
	}
	s.releaseAgain()
	return ""
}

// watch lets a job's row be told the end, or tells it at once.
func (s *step) watch(key string) {
	if key == "" || slices.Contains(s.p.Watchers, key) {
		return
	}
	if s.active() {
		s.p.Watchers = append(s.p.Watchers, key)
		return
	}
	s.tellOwner(key)
}
