package sidecar

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// batchID refuses an id that no batch can have.
func (s *Server) batchID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if codecs.ValidID("batch", chi.URLParam(r, "id")) != nil {
			writeProblem(w, notFound("that is not the id of a batch"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// atLeast lets a request with at_least=<position> wait until that control record is durable in the table, then serves it.
func (s *Server) atLeast(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := r.URL.Query().Get("at_least")
		if text == "" {
			next.ServeHTTP(w, r)
			return
		}
		pos, err := api.ParsePosition(text)
		if err != nil {
			s.fail(w, r, badParameter("at_least", err.Error()))
			return
		}
		if err := s.await(r.Context(), chi.URLParam(r, "id"), pos, s.cfg.AtLeastTimeout); err != nil {
			s.fail(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// await blocks until a control record is durable in the table. It fails with a 504 after the time-out.
func (s *Server) await(ctx context.Context, id string, pos api.Position, limit time.Duration) error {
	done, err := s.until(ctx, id, limit, func() (bool, error) { return s.cfg.Batches.Reached(id, pos) })
	if err == nil && !done {
		return notYet("the controller has not made " + pos.String() + " durable within " + limit.String())
	}
	return err
}

// until blocks until the condition holds, looking again at each change of the row; false = the time is over, or the
// server stops.
func (s *Server) until(ctx context.Context, id string, limit time.Duration, cond func() (bool, error)) (bool, error) {
	changed, stop := s.cfg.Batches.Watch(id)
	defer stop()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		if ok, err := cond(); ok || err != nil {
			return ok, err
		}
		select {
		case <-changed:
		case <-timer.C:
			return false, nil
		case <-s.closing:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}
