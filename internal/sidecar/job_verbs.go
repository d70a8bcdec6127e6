package sidecar

import (
	"context"
	"net/http"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// jobVerbSpec is one command, what it needs, and the states in which it makes sense.
type jobVerbSpec struct {
	name  string
	state func(j *api.Job) string                            // "" = allowed, else the reason
	needs func(a *codecs.JobCommandArgs) (fault []api.Field) // may be nil
}

// jobVerbs lists all of them; the routes and the OpenAPI document follow it.
var jobVerbs = []jobVerbSpec{
	{name: "cancel", state: jobNotEnded},
	{name: "pause", state: jobNotEnded},
	{name: "resume", state: jobNotEnded},
	{name: "extend", state: jobNotEnded, needs: func(a *codecs.JobCommandArgs) (fault []api.Field) {
		if a.Deadlines == nil {
			fault = append(fault, api.Field{Pointer: "/deadlines", Reason: "missing"})
		}
		return fault
	}},
	{name: "policy", state: jobNotEnded, needs: func(a *codecs.JobCommandArgs) (fault []api.Field) {
		if a.Step == "" {
			fault = append(fault, api.Field{Pointer: "/step", Reason: "missing: the fan-out step"})
		}
		if a.Policy == nil && a.Window == 0 {
			fault = append(fault, api.Field{Pointer: "/policy", Reason: "missing: a policy, a window, or both"})
		}
		return fault
	}},
	{name: "redrive", state: func(j *api.Job) string {
		switch {
		case !j.Terminal:
			return "the job has not ended"
		case j.State == "completed" || j.State == "collected":
			return "the job is " + j.State
		}
		return ""
	}},
	{name: verbRepair, state: func(j *api.Job) string {
		if !j.Quarantined {
			return "the job is not quarantined, and no record of it waits in the dead letter"
		}
		return ""
	}},
}

func jobNotEnded(j *api.Job) string {
	if j.Terminal {
		return "the job is " + j.State
	}
	return ""
}

// jobVerb answers one command. The record is written once per request; the row acts once per command id.
func (s *Server) jobVerb(v jobVerbSpec) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		accepted, err := s.jobCommand(w, r, v)
		if err != nil {
			s.failJob(w, r, err)
			return
		}
		writeJSON(w, http.StatusAccepted, accepted)
	}
}

func (s *Server) jobCommand(w http.ResponseWriter, r *http.Request, v jobVerbSpec) (*api.Accepted, error) {
	args := &codecs.JobCommandArgs{}
	id, key, expect, err := s.readCommand(w, r, args)
	if err != nil {
		return nil, err
	}
	t := s.jobOf(r)
	ev := &codecs.Event{Type: codecs.TypeJobCommand, ID: id + "/" + key, Key: id, Traceparent: r.Header.Get("traceparent"),
		Data: &codecs.JobCommand{Id: key, Verb: v.name, Args: args, Expect: expect}}
	if err := validate(ev, "/args"); err != nil {
		return nil, err
	}
	if v.needs != nil {
		if faults := v.needs(args); len(faults) > 0 {
			return nil, invalid(faults...)
		}
	}
	err = s.confirm(r.Context(), t, func() error { return s.allows(r.Context(), t, key, expect, v, args) })
	if err != nil {
		return nil, err
	}
	pos, err := s.cfg.JobLog.Append(r.Context(), t.key, ev)
	if err != nil {
		return nil, brokerFault(ev.Type+" of job "+id, err)
	}
	accepted := &api.Accepted{Command: key, Position: pos}
	if v.name == verbRepair {
		accepted.Repaired, err = s.sendBack(r.Context(), t, pos)
	}
	return accepted, err
}

// allows says why the job, as the view has it, refuses a command.
func (s *Server) allows(ctx context.Context, t target, command string, expect uint64, v jobVerbSpec, args *codecs.JobCommandArgs) error {
	j, err := s.cfg.Jobs.Get(t.key)
	if err != nil {
		return err
	}
	if _, err := s.cfg.Jobs.Command(t.key, command); err == nil {
		return nil // a repeat: the row knows it
	}
	if expect != 0 && expect != uint64(j.Version) {
		return staleVersion("job", j.Version)
	}
	if reason := v.state(j); reason != "" {
		return s.refusal(ctx, t, v.name, reason)
	}
	if args.Step == "" {
		return nil
	}
	for _, st := range j.Steps {
		if st.Step == args.Step {
			return nil
		}
	}
	return invalid(api.Field{Pointer: "/step", Reason: "the job has no such step"})
}
