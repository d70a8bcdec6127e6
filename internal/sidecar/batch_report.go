package sidecar

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/oklog/ulid/v2"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// report writes batch.report: completions from any language. Repeats change nothing.
func (s *Server) report(w http.ResponseWriter, r *http.Request) {
	pos, err := s.appendReport(w, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusAccepted, api.Reported{Position: pos})
}

func (s *Server) appendReport(w http.ResponseWriter, r *http.Request) (pos api.Position, err error) {
	b, err := readBody(w, r, maxReportBody)
	if err != nil {
		return pos, err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return pos, err
	}
	if key == "" {
		key = ulid.Make().String()
	}
	id, rep := chi.URLParam(r, "id"), &codecs.BatchReport{}
	if err := decodeData(b, rep); err != nil {
		return pos, err
	}
	err = s.judge(r.Context(), s.batchOf(r), func(b *api.Batch) error {
		if rep.Run == "" {
			rep.Run = b.Run
		}
		return nil
	})
	if err != nil {
		return pos, err
	}
	ev := &codecs.Event{Type: codecs.TypeBatchReport, ID: id + "/" + key, Key: id, Data: rep,
		Traceparent: r.Header.Get("traceparent")}
	if err := validate(ev, ""); err != nil {
		return pos, err
	}
	if pos, err = s.cfg.Log.Append(r.Context(), id, ev); err != nil {
		return pos, brokerFault("report of batch "+id, err)
	}
	return pos, nil
}
