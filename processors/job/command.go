package job

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

const verbWatch = "watch"

// command applies a command once and keeps its answer. A command is absolute: it says what shall be, not what to change.
func (s *step) command(d *codecs.JobCommand) {
	r := s.r
	id := d.Id
	if id == "" {
		id = s.ev.ID
	}
	for _, a := range r.Answers {
		if a.Id == id {
			s.duplicate()
			return
		}
	}
	reason := ""
	switch {
	case d.Expect != 0 && d.Expect != r.Version:
		reason = fmt.Sprintf("version is %d, not %d", r.Version, d.Expect)
	default:
		if do, ok := verbs[d.Verb]; ok {
			args := d.Args
			if args == nil {
				args = &codecs.JobCommandArgs{}
			}
			reason = do(s, args)
		} else {
			reason = fmt.Sprintf("unknown verb %q", d.Verb)
		}
	}
	if reason == "" && d.Verb != verbWatch {
		r.Version++
	}
	r.Answers = append(r.Answers, &codecs.CommandAnswer{Id: id, Verb: d.Verb, Applied: reason == "", Reason: reason, At: r.Now})
	if n := len(r.Answers) - maxAnswers; n > 0 {
		r.Answers = r.Answers[n:]
	}
	if reason == "" {
		s.advance()
	}
}

// verbs returns a reason when the command is refused.
var verbs = map[string]func(*step, *codecs.JobCommandArgs) string{
	"cancel":  (*step).cancel,
	"pause":   func(s *step, _ *codecs.JobCommandArgs) string { return s.pause(true) },
	"resume":  func(s *step, _ *codecs.JobCommandArgs) string { return s.pause(false) },
	"redrive": (*step).redrive,
	"extend":  (*step).extend,
	"policy":  (*step).policy,
	"window":  (*step).policy,
	"repair":  func(*step, *codecs.JobCommandArgs) string { return "" },
	verbWatch: func(s *step, a *codecs.JobCommandArgs) string { return s.watch(a.Reason) },
}

func (s *step) cancel(a *codecs.JobCommandArgs) string {
	if ended(s.r.State) {
		return "the job has ended: " + s.r.State.String()
	}
	reason := a.Reason
	if reason == "" {
		reason = "cancelled"
	}
	s.stopSteps(codecs.StepState_cancelled, reason)
	s.end(codecs.JobState_cancelled, reason)
	return ""
}

// pause starts no new step, stops the release of sub-jobs, and puts the job's end off, until resume.
func (s *step) pause(on bool) string {
	r := s.r
	if ended(r.State) {
		return "the job has ended: " + r.State.String()
	}
	if r.Paused == on {
		return ""
	}
	r.Paused = on
	verb := "resume"
	if on {
		verb = "pause"
	}
	for _, st := range r.Steps {
		if st.State == codecs.StepState_running && st.Proposal != "" {
			s.toBatch(st.Batch, verb, &codecs.CommandArgs{Run: st.Run})
		}
	}
	return ""
}

// extend sets deadlines: of the job, or of the batch of a step.
func (s *step) extend(a *codecs.JobCommandArgs) string {
	r := s.r
	if ended(r.State) {
		return "the job has ended: " + r.State.String()
	}
	if a.Deadlines == nil {
		return "/deadlines: missing"
	}
	if a.Step == "" {
		r.CompleteBy = a.Deadlines.CompleteBy
		return ""
	}
	i := indexOf(r, a.Step)
	if i < 0 || r.Definition.Steps[i].FanOut == nil {
		return fmt.Sprintf("/step: %q has no batch", a.Step)
	}
	if st := r.Steps[i]; st.State == codecs.StepState_running {
		s.toBatch(st.Batch, "extend", &codecs.CommandArgs{Run: st.Run, Deadlines: a.Deadlines})
		return ""
	}
	return fmt.Sprintf("step %s is %s", a.Step, r.Steps[i].State)
}

// policy changes the failure policy or the window of a fan-out step: of its running batch, or before it starts.
func (s *step) policy(a *codecs.JobCommandArgs) string {
	r := s.r
	i := indexOf(r, a.Step)
	if i < 0 || r.Definition.Steps[i].FanOut == nil {
		return fmt.Sprintf("/step: %q has no batch", a.Step)
	}
	if err := validPolicy(a.Policy); err != nil {
		return "/policy: " + err.Error()
	}
	if a.Policy == nil && a.Window == 0 {
		return "/policy, /window: one must be given"
	}
	if ended(r.State) {
		return "the job has ended: " + r.State.String()
	}
	f := r.Definition.Steps[i].FanOut
	if a.Policy != nil {
		f.Policy = proto.Clone(a.Policy).(*codecs.Policy)
	}
	if a.Window > 0 {
		f.Window = a.Window
	}
	switch st := r.Steps[i]; st.State {
	case codecs.StepState_pending, codecs.StepState_splitting:
		return ""
	case codecs.StepState_running:
		s.toBatch(st.Batch, "policy", &codecs.CommandArgs{Run: st.Run, Policy: a.Policy, Window: a.Window})
		return ""
	default:
		return fmt.Sprintf("step %s is %s", a.Step, st.State)
	}
}
