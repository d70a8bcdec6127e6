package sidecar

import (
	"net/http"

	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// health answers as long as the process does.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, 200, api.Health{Status: "ok"})
}

// ready answers 200 when every view is loaded and connected, else 503 with the percentage.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	v := s.cfg.readiness()
	switch {
	case !v.OK:
		writeProblem(w, recovering(v))
	case v.Stale:
		p := recovering(v)
		p.Title, p.Detail = "View is reconnecting", "the broker is out of reach; reads give what was last seen"
		writeProblem(w, p)
	default:
		writeJSON(w, 200, api.Health{Status: "ready", Recovered: v.Percent})
	}
}
