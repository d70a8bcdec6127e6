package sidecar

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// showJob gives one job; with wait=30s it answers when the job has ended, or after that time with what it is then.
func (s *Server) showJob(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	q.only("wait", "customer", "at_least")
	wait := q.duration("wait", s.cfg.WaitTimeout)
	if err := q.err(); err != nil {
		s.fail(w, r, err)
		return
	}
	j, err := s.endOfJob(r, wait)
	if err == nil {
		err = s.countSteps(j)
	}
	if err != nil {
		s.failJob(w, r, err)
		return
	}
	w.Header().Set("ETag", strconv.Quote(strconv.FormatInt(int64(j.Version), 10)))
	s.markStale(w, s.cfg.Jobs)
	writeJSON(w, 200, j)
}

// endOfJob returns the job when it has ended, or as it is after the wait.
func (s *Server) endOfJob(r *http.Request, wait time.Duration) (j *api.Job, err error) {
	t := s.jobOf(r)
	if j, err = s.cfg.Jobs.Get(t.key); err != nil || j.Terminal || wait == 0 {
		return j, err
	}
	_, err = s.until(r.Context(), t, wait, func() (bool, error) {
		if j, err = s.cfg.Jobs.Get(t.key); err != nil {
			return false, err
		}
		return j.Terminal, nil
	})
	return j, err
}

// countSteps gives running fan-out steps the counts of their batches: the job's row learns them at the end only.
func (s *Server) countSteps(j *api.Job) error {
	for i := range j.Steps {
		st := &j.Steps[i]
		if st.Batch == "" || st.State != "running" {
			continue
		}
		b, err := s.cfg.Batches.Get(st.Batch)
		switch {
		case errors.Is(err, ErrUnknown):
		case err != nil:
			return err
		case b.Run == st.Run && b.Round >= st.BatchRound:
			st.Counts = &b.Counts
		}
	}
	return nil
}

func (s *Server) showJobCommand(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	q.only("customer", "at_least")
	if err := q.err(); err != nil {
		s.fail(w, r, err)
		return
	}
	c, err := s.cfg.Jobs.Command(s.jobOf(r).key, chi.URLParam(r, "command"))
	if err != nil {
		s.failJob(w, r, err)
		return
	}
	writeJSON(w, 200, c)
}
