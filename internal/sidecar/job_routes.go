package sidecar

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

func (s *Server) jobRoutes(r chi.Router) {
	r = r.With(s.hasJobs)
	r.With(s.atLeast(s.anyJob)).Get("/v1/jobs", s.listJobs)
	r.Post("/v1/jobs", s.requestJob)
	r.Route("/v1/jobs/{id}", func(r chi.Router) {
		r.Use(s.jobID, s.atLeast(s.jobOf))
		r.Get("/", s.showJob)
		r.Get("/tasks", s.listJobTasks)
		r.Get("/commands/{command}", s.showJobCommand)
	})
	for _, v := range jobVerbs {
		r.With(s.jobID, s.atLeast(s.jobOf)).Post("/v1/jobs/{id}:"+v.name, s.jobVerb(v))
	}
}

// hasJobs answers 501 where the sidecar sees no jobs.
func (s *Server) hasJobs(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.cfg.Jobs == nil {
			writeProblem(w, &api.Problem{Type: api.ProblemUnavailable, Title: "No table of jobs is configured", Status: 501})
			return
		}
		next.ServeHTTP(w, r)
	})
}

type jobKey struct{} // of the context value that jobID sets

// jobID finds the key of the job's row, and refuses what no job can have.
func (s *Server) jobID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := chi.URLParam(r, "id")
		if codecs.ValidID("job", id) != nil {
			writeProblem(w, notFound("that is not the id of a job"))
			return
		}
		customer := r.URL.Query().Get("customer")
		switch {
		case s.cfg.CustomerKeys && codecs.ValidID("customer", customer) != nil:
			s.fail(w, r, badParameter("customer", "needed: this deployment keeps the jobs of each customer apart"))
			return
		case !s.cfg.CustomerKeys && customer != "":
			s.fail(w, r, badParameter("customer", "not needed: this deployment finds a job by its id alone"))
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), jobKey{}, s.keyOf(customer, id))))
	})
}

// keyOf is the key of a job's row.
func (s *Server) keyOf(customer, id string) string {
	if s.cfg.CustomerKeys {
		return customer + "\x00" + id
	}
	return id
}

// jobOf is the job that a request is about; jobID has found it.
func (s *Server) jobOf(r *http.Request) target {
	return target{table: s.cfg.Jobs, log: s.cfg.JobLog, key: r.Context().Value(jobKey{}).(string)}
}

func (s *Server) anyJob(*http.Request) target { return target{table: s.cfg.Jobs, log: s.cfg.JobLog} }

// failJob is fail for what is about jobs.
func (s *Server) failJob(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, ErrUnknown) {
		err = notFound("there is no such job, or it was collected")
	}
	s.fail(w, r, err)
}
