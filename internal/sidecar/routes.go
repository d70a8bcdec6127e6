package sidecar

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// routes lists every route. The OpenAPI document lists the same ones; a test compares them.
func (s *Server) routes() http.Handler {
	r := chi.NewRouter()
	r.Use(s.recoverPanics, s.observe, s.guardOrigin)
	r.NotFound(func(w http.ResponseWriter, r *http.Request) { writeProblem(w, notFound("no such path: "+r.URL.Path)) })
	r.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) { writeProblem(w, methodNotAllowed(r)) })

	r.Get("/healthz", s.health)
	r.Get("/readyz", s.ready)
	s.page(r)
	r.Group(func(r chi.Router) {
		r.Use(s.authorize)
		r.Get("/metrics", promhttp.HandlerFor(s.cfg.Gatherer, promhttp.HandlerOpts{}).ServeHTTP)
		r.Get("/v1/openapi.json", s.openAPI)
		r.Get("/v1/topology", s.topology)
		r.Get("/v1/events", s.events)
		s.batchRoutes(r)
		s.jobRoutes(r)
		r.Get("/v1/stats", s.stats)
	})
	return r
}

func (s *Server) batchRoutes(r chi.Router) {
	r.With(s.atLeast(s.batchOf)).Get("/v1/batches", s.listBatches)
	r.Post("/v1/batches", s.startBatch)
	r.Route("/v1/batches/{id}", func(r chi.Router) {
		r.Use(s.batchID)
		r.With(s.atLeast(s.batchOf)).Get("/", s.showBatch)
		r.With(s.atLeast(s.batchOf)).Get("/tasks", s.listTasks)
		r.With(s.atLeast(s.batchOf)).Get("/missing", s.missing)
		r.With(s.atLeast(s.batchOf)).Get("/explain", s.explain)
		r.With(s.atLeast(s.batchOf)).Get("/commands/{command}", s.showCommand)
		r.With(s.atLeast(s.batchOf)).Post("/reports", s.report)
	})
	for _, v := range verbs {
		r.With(s.batchID, s.atLeast(s.batchOf)).Post("/v1/batches/{id}:"+v.name, s.verb(v))
	}
}
