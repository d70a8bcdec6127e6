package sidecar

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// target is what a request is about: a row of a table, and the log that its machine reads.
type target struct {
	table Table
	log   Log
	key   string // "" = no row in particular
}

func (s *Server) batchOf(r *http.Request) target {
	return target{table: s.cfg.Batches, log: s.cfg.Log, key: chi.URLParam(r, "id")}
}

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

// atLeast lets a request with at_least=<position> wait until that record of the log is durable in the table, then serves
// it.
func (s *Server) atLeast(of func(*http.Request) target) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
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
			if err := s.await(r.Context(), of(r), pos, s.cfg.AtLeastTimeout); err != nil {
				s.fail(w, r, err)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// await blocks until a record of the log is durable in the table. It fails with a 504 after the time-out.
func (s *Server) await(ctx context.Context, t target, pos api.Position, limit time.Duration) error {
	done, err := s.until(ctx, t, limit, func() (bool, error) { return t.table.Reached(t.key, pos) })
	if err == nil && !done {
		return notYet(pos.String() + " was not made durable within " + limit.String())
	}
	return err
}

// until blocks until the condition holds, looking again at each change of the row; false = the time is over, or the
// server stops.
func (s *Server) until(ctx context.Context, t target, limit time.Duration, cond func() (bool, error)) (bool, error) {
	changed, stop := t.table.Watch(t.key)
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
