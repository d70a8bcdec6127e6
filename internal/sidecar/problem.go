package sidecar

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// writeProblem answers with an RFC 9457 document.
func writeProblem(w http.ResponseWriter, p *api.Problem) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Del("Etag")
	if p.Status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(p.Status)
	b, _ := json.Marshal(p) // strings and numbers only
	_, _ = w.Write(append(b, '\n'))
}

// writeJSON answers with a body.
func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		writeProblem(w, &api.Problem{Type: api.ProblemInternal, Title: "Answer cannot be printed", Status: 500, Detail: err.Error()})
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}

// fail answers with what an error of a source means.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var p *api.Problem
	switch {
	case errors.As(err, &p):
	case errors.Is(err, ErrNotReady):
		p = recovering(s.cfg.readiness())
	case errors.Is(err, ErrUnknown):
		p = notFound("there is no such batch, or it was collected")
	case r.Context().Err() != nil:
		p = notYet("the request ended before the answer was there")
	default:
		s.cfg.Logger.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		p = &api.Problem{Type: api.ProblemInternal, Title: "Internal error", Status: 500, Detail: err.Error()}
	}
	writeProblem(w, p)
}

func recovering(v Readiness) *api.Problem {
	pct := v.Percent
	return &api.Problem{Type: api.ProblemRecovering, Title: "View is recovering", Status: 503,
		Detail: fmt.Sprintf("%.1f%% of the table is loaded; nothing is served before all of it is", pct), Recovered: &pct}
}

func notFound(detail string) *api.Problem {
	return &api.Problem{Type: api.ProblemNotFound, Title: "Not found", Status: 404, Detail: detail}
}

func notYet(detail string) *api.Problem {
	return &api.Problem{Type: api.ProblemNotYet, Title: "Not there yet", Status: 504, Detail: detail}
}

func wrongState(detail string) *api.Problem {
	return &api.Problem{Type: api.ProblemWrongState, Title: "Wrong state", Status: 409, Detail: detail}
}

func badRequest(detail string) *api.Problem {
	return &api.Problem{Type: api.ProblemBadRequest, Title: "Bad request", Status: 400, Detail: detail}
}

func methodNotAllowed(r *http.Request) *api.Problem {
	return &api.Problem{Type: api.ProblemMethod, Title: "Method not allowed", Status: 405, Detail: r.Method + " " + r.URL.Path}
}

// invalid is a problem that names fields.
func invalid(fields ...api.Field) *api.Problem {
	return &api.Problem{Type: api.ProblemInvalid, Title: "Invalid request", Status: 422, Errors: fields}
}

func badParameter(name, reason string) *api.Problem {
	return invalid(api.Field{Parameter: name, Reason: reason})
}
