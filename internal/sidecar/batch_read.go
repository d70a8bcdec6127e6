package sidecar

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// showBatch gives one batch; with wait=30s it answers when the batch has ended, or after that time with what it is then.
func (s *Server) showBatch(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	q.only("wait", "at_least")
	wait := q.duration("wait", s.cfg.WaitTimeout)
	if err := q.err(); err != nil {
		s.fail(w, r, err)
		return
	}
	b, err := s.endOf(r, chi.URLParam(r, "id"), wait)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("ETag", strconv.Quote(strconv.FormatInt(int64(b.Version), 10)))
	s.markStale(w, s.cfg.Batches)
	writeJSON(w, 200, b)
}

// endOf returns the batch when it has ended, or as it is after the wait.
func (s *Server) endOf(r *http.Request, id string, wait time.Duration) (*api.Batch, error) {
	b, err := s.cfg.Batches.Get(id)
	if err != nil || b.Terminal || wait == 0 {
		return b, err
	}
	_, err = s.until(r.Context(), s.batchOf(r), wait, func() (bool, error) {
		if b, err = s.cfg.Batches.Get(id); err != nil {
			return false, err
		}
		return b.Terminal, nil
	})
	return b, err
}

// markStale says in a header that the broker is out of reach and the answer may be old.
func (s *Server) markStale(w http.ResponseWriter, t Table) {
	if t.Readiness().Stale {
		w.Header().Set("Quiesce-View", "reconnecting")
	}
}

var outcomeWords = []string{"pending", "running", "ok", "failed", "skipped", "cancelled", "timed_out", "lost", "unknown"}

const taskTokens = "t:"

func (s *Server) listTasks(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	q.only("outcome", "limit", "cursor", "at_least")
	outcomes, limit, from := q.words("outcome", outcomeWords), q.limit(), q.place(taskTokens)
	if err := q.err(); err != nil {
		s.fail(w, r, err)
		return
	}
	id := chi.URLParam(r, "id")
	page, err := s.cfg.Batches.Tasks(id, outcomes, from, limit)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	list := api.TaskList{Batch: id, Run: page.Run, Tasks: page.Tasks, Next: placeToken(taskTokens, page.Next)}
	if list.Tasks == nil {
		list.Tasks = []api.Task{}
	}
	s.markStale(w, s.cfg.Batches)
	writeJSON(w, 200, list)
}

const missingTokens = "m:"

func (s *Server) missing(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	q.only("limit", "cursor", "at_least")
	limit, from := q.limit(), q.place(missingTokens)
	if err := q.err(); err != nil {
		s.fail(w, r, err)
		return
	}
	page, err := s.cfg.Batches.Missing(chi.URLParam(r, "id"), from, limit)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if page.Ranges == nil {
		page.Ranges = []api.Range{}
	}
	page.Missing.Next = placeToken(missingTokens, page.Next)
	s.markStale(w, s.cfg.Batches)
	writeJSON(w, 200, page.Missing)
}

func (s *Server) showCommand(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	q.only("at_least")
	if err := q.err(); err != nil {
		s.fail(w, r, err)
		return
	}
	c, err := s.cfg.Batches.Command(chi.URLParam(r, "id"), chi.URLParam(r, "command"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, 200, c)
}
