package sidecar

import (
	"errors"
	"net/http"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/processors/job"
)

// maxJobID keeps the ids of a job's batches, <job>.<step>, within what an id may have.
const maxJobID = 64

// requestJob writes job.requested. The same Idempotency-Key gives the same request, which the row takes once.
func (s *Server) requestJob(w http.ResponseWriter, r *http.Request) {
	requested, err := s.request(w, r)
	if err != nil {
		s.failJob(w, r, err)
		return
	}
	w.Header().Set("Location", api.JobPath(s.keyOf(requested.Customer, requested.Job)))
	writeJSON(w, http.StatusCreated, requested)
}

func (s *Server) request(w http.ResponseWriter, r *http.Request) (*api.Requested, error) {
	b, err := readBody(w, r, maxBody)
	if err != nil {
		return nil, err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return nil, err
	}
	if key == "" {
		key = ulid.Make().String()
	}
	id, data, err := splitID(b, "job")
	if err != nil {
		return nil, err
	}
	req := &codecs.JobRequested{}
	if err := decodeData(data, req); err != nil {
		return nil, err
	}
	ev := &codecs.Event{Type: codecs.TypeJobRequested, ID: id + "/" + key + "/requested", Key: id, Data: req,
		Traceparent: r.Header.Get("traceparent")}
	if err := s.checkRequest(id, req, ev); err != nil {
		return nil, err
	}
	t := target{table: s.cfg.Jobs, log: s.cfg.JobLog, key: s.keyOf(req.Customer, id)}
	if err := s.confirm(r.Context(), t, func() error { return s.free(t.key, ev.ID) }); err != nil {
		return nil, err
	}
	pos, err := s.cfg.JobLog.Append(r.Context(), t.key, ev)
	if err != nil {
		return nil, brokerFault("request of job "+id, err)
	}
	return &api.Requested{Job: id, Customer: req.Customer, Request: ev.ID, Position: pos}, nil
}

// free says whether a job with that key may be requested: there is none, or the same request made it.
func (s *Server) free(key, request string) error {
	switch j, err := s.cfg.Jobs.Get(key); {
	case errors.Is(err, ErrUnknown):
		return nil
	case err != nil:
		return err
	case j.Request != request:
		return wrongState("the job exists: it is " + j.State)
	}
	return nil
}

// checkRequest checks what the workflow would send to the dead letter.
func (s *Server) checkRequest(id string, req *codecs.JobRequested, ev *codecs.Event) error {
	if def := req.Definition; def != nil {
		if req.Type == "" {
			req.Type = def.Name
		}
		if req.Version == 0 {
			req.Version = def.Version
		}
	}
	if err := codecs.ValidID("job", id); err != nil {
		return invalid(api.Field{Pointer: "/id", Reason: err.Error()})
	}
	if len(id) > maxJobID {
		return invalid(api.Field{Pointer: "/id", Reason: "longer than 64 characters"})
	}
	if s.cfg.CustomerKeys && req.Customer == "" {
		return invalid(api.Field{Pointer: "/customer", Reason: "missing: this deployment keeps the jobs of each customer apart"})
	}
	if err := validate(ev, ""); err != nil {
		return err
	}
	if err := job.CheckRequest(s.keyOf(req.Customer, id), req); err != nil {
		return invalid(faultFields(err)...)
	}
	return nil
}

// faultFields names the members that the faults of a request begin with: "/input: too long".
func faultFields(err error) (fields []api.Field) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		f := api.Field{Reason: line}
		if pointer, reason, ok := strings.Cut(line, ": "); ok && strings.HasPrefix(pointer, "/") {
			pointer, _, _ = strings.Cut(pointer, ", ")
			f = api.Field{Pointer: pointer, Reason: reason}
		}
		fields = append(fields, f)
	}
	return fields
}
