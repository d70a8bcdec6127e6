package batch

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

// command applies a command once and keeps its answer. Commands are absolute: they say what shall be.
func (s *step) command(d *codecs.BatchCommand) {
	r := s.r
	id := d.Id
	if id == "" {
		id = s.ev.ID
	}
	id = clip(id)
	if slices.ContainsFunc(r.Answers, func(a *codecs.CommandAnswer) bool { return a.Id == id }) {
		s.audit().Duplicates++
		return
	}
	reason := s.refused(d)
	if reason == "" {
		reason = verbs[d.Verb](s, r.run, d.Args)
	}
	if reason == "" && d.Verb != verbWatch {
		r.Version++
	}
	s.answer(&codecs.CommandAnswer{Id: id, Verb: clip(d.Verb), Applied: reason == "", Reason: clip(reason), At: r.Now})
	switch {
	case reason != "":
		s.refuse(d, reason)
	case r.run != nil:
		s.evaluate()
	}
}

// answer keeps an answer: the last 32, or fewer where they are long.
func (s *step) answer(a *codecs.CommandAnswer) {
	r := s.r
	r.Answers = append(r.Answers, a)
	size := 0
	for i := len(r.Answers) - 1; i >= 0; i-- {
		if size += proto.Size(r.Answers[i]); size > answersRoom || len(r.Answers)-i > maxAnswers {
			r.Answers = r.Answers[i+1:]
			return
		}
	}
}

// refused says why a command cannot be looked at.
func (s *step) refused(d *codecs.BatchCommand) string {
	r := s.r
	run := d.Args.GetRun()
	switch {
	case verbs[d.Verb] == nil:
		return fmt.Sprintf("unknown verb %q", d.Verb)
	case d.Expect != 0 && d.Expect != r.Version:
		return fmt.Sprintf("version is %d, not %d", r.Version, d.Expect)
	case d.Verb == verbWatch:
		return ""
	case r.run == nil || r.run.Start == nil:
		return "no such batch"
	case run != "" && run != r.run.Run:
		return fmt.Sprintf("run %s is not the current one, %s is", run, r.run.Run)
	}
	return ""
}

const verbWatch = "watch"

// verbs return a reason when the command is refused. Filled in init, because redrive leads back here.
var verbs map[string]func(*step, *life, *codecs.CommandArgs) string

func init() {
	verbs = map[string]func(*step, *life, *codecs.CommandArgs) string{
		"cancel":       (*step).cancel,
		"pause":        func(s *step, l *life, _ *codecs.CommandArgs) string { return s.pause(l, true) },
		"resume":       func(s *step, l *life, _ *codecs.CommandArgs) string { return s.pause(l, false) },
		"extend":       (*step).extend,
		"policy":       (*step).policy,
		"redrive":      (*step).redrive,
		"reevaluate":   (*step).reevaluate,
		"repair":       func(*step, *life, *codecs.CommandArgs) string { return "" },
		"gc":           (*step).gc,
		"inconsistent": (*step).inconsistent,
		verbWatch:      (*step).watch,
	}
}

func ended(l *life) string {
	if l.open() != nil {
		return ""
	}
	return "the batch has ended: " + l.State.String()
}

func (s *step) cancel(l *life, a *codecs.CommandArgs) string {
	if reason := ended(l); reason != "" {
		return reason
	}
	reason := clip(a.GetReason())
	if reason == "" {
		reason = "cancelled"
	}
	s.finish(codecs.State_cancelled, codecs.Cancelled, reason)
	return ""
}

// pause stops the release of tasks and defers completion until resume.
func (s *step) pause(l *life, on bool) string {
	if reason := ended(l); reason != "" {
		return reason
	}
	if l.Paused && !on {
		l.LastProgress = s.r.Now // it was not idle, it was not allowed
	}
	l.Paused = on
	return ""
}

// extend sets deadlines; what is absent stays.
func (s *step) extend(l *life, a *codecs.CommandArgs) string {
	if reason := ended(l); reason != "" {
		return reason
	}
	if a.GetDeadlines() == nil && a.GetOnDeadline() == "" {
		return "/deadlines: missing"
	}
	if a.OnDeadline != "" {
		l.Start.OnDeadline = clip(a.OnDeadline)
	}
	if d := a.Deadlines; d != nil {
		now := absolute(d, s.r.Now)
		keep := func(to *int64, v int64) {
			if v > 0 {
				*to = v
			}
		}
		keep(&l.Deadlines.SealBy, now.SealBy)
		keep(&l.Deadlines.CompleteBy, now.CompleteBy)
		keep(&l.Deadlines.NoProgressFor, now.NoProgressFor)
	}
	return ""
}

// policy changes the failure policy, or the window of a queue batch, while it runs.
func (s *step) policy(l *life, a *codecs.CommandArgs) string {
	if reason := ended(l); reason != "" {
		return reason
	}
	if a.GetPolicy() == nil && a.GetWindow() == 0 {
		return "/policy, /window: one must be given"
	}
	if a.Policy != nil {
		l.Policy = clone(a.Policy)
	}
	if a.Window > 0 {
		l.Window = a.Window
	}
	return ""
}

// reevaluate judges the batch again from what is durable. It leaves INCONSISTENT only when every cause is gone.
func (s *step) reevaluate(l *life, _ *codecs.CommandArgs) string {
	if l.State != codecs.State_inconsistent {
		return ended(l)
	}
	if len(l.Causes) > 0 {
		return "still inconsistent: " + l.Causes[0]
	}
	return s.reopen(l)
}

// inconsistent records, or with no difference clears, what a watchdog found.
func (s *step) inconsistent(l *life, a *codecs.CommandArgs) string {
	if a.GetDifference() == "" {
		l.Causes = slices.DeleteFunc(l.Causes, func(c string) bool { return len(c) > len(watchdog) && c[:len(watchdog)] == watchdog })
		return ""
	}
	s.contradict(watchdog + clip(a.Difference))
	return ""
}

const watchdog = "watchdog: "

// gc collects an ended batch before its retention is over.
func (s *step) gc(l *life, _ *codecs.CommandArgs) string {
	switch {
	case l.State == codecs.State_collected:
		return "the batch is collected"
	case l.open() != nil:
		return "the batch is open"
	}
	s.collect(l)
	return ""
}

// watch remembers a job that awaits the batch, or tells it at once.
func (s *step) watch(l *life, a *codecs.CommandArgs) string {
	key := clip(a.GetWatcher())
	switch {
	case key == "":
		return "/watcher: missing"
	case l != nil && l.Start != nil && l.open() == nil:
		s.tell(l, key, "")
	case slices.Contains(s.r.Watchers, key):
	case len(s.r.Watchers) >= maxWatchers:
		return fmt.Sprintf("at most %d jobs may await a batch", maxWatchers)
	default:
		s.r.Watchers = append(s.r.Watchers, key)
	}
	return ""
}
