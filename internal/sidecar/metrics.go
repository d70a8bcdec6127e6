package sidecar

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics of the HTTP side. Names start with quiesce_sidecar_; durations are in seconds.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newMetrics(cfg Config) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quiesce_sidecar_requests_total", Help: "HTTP requests answered, by route and status.",
		}, []string{"method", "route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quiesce_sidecar_request_duration_seconds", Help: "Time to answer, event streams left out.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route"}),
	}
	ready := func() float64 {
		if v := cfg.readiness(); !v.OK || v.Stale {
			return 0
		}
		return 1
	}
	for _, c := range []prometheus.Collector{
		m.requests, m.duration, newWorkersWanted(cfg),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quiesce_sidecar_view_recovered_ratio", Help: "Part of the tables that is loaded, 0 to 1; the least loaded one counts.",
		}, func() float64 { return cfg.readiness().Percent / 100 }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quiesce_sidecar_ready", Help: "1 when the views are loaded and connected.",
		}, ready),
	} {
		if err := cfg.Registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// observe counts and times requests by route pattern, so that ids never become label values.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := s.cfg.Now()
		rec := &statusWriter{ResponseWriter: w, status: 200}
		next.ServeHTTP(rec, r)
		route := chi.RouteContext(r.Context()).RoutePattern()
		if route == "" {
			route = "none"
		}
		s.metrics.requests.WithLabelValues(r.Method, route, strconv.Itoa(rec.status)).Inc()
		if route != "/v1/events" {
			s.metrics.duration.WithLabelValues(route).Observe(s.cfg.Now().Sub(start).Seconds())
		}
		s.cfg.Logger.Debug("request", "method", r.Method, "path", r.URL.Path, "status", rec.status,
			"duration_ms", float64(s.cfg.Now().Sub(start))/float64(time.Millisecond))
	})
}

// statusWriter remembers the status. Unwrap lets http.ResponseController reach the writer below.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
