package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Server is one sidecar.
type Server struct {
	cfg     Config
	handler http.Handler
	metrics *metrics
	lag     *lagTracker
	streams chan struct{} // one slot per open event stream
	closing chan struct{} // closed when Serve begins to stop: streams and waits end
}

// New makes a sidecar. It does not listen yet.
func New(cfg Config) (*Server, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, streams: make(chan struct{}, cfg.MaxStreams), closing: make(chan struct{})}
	var err error
	if s.metrics, err = newMetrics(cfg); err != nil {
		return nil, fmt.Errorf("sidecar: metrics: %w", err)
	}
	s.lag = newLagTracker(cfg.Groups, cfg.Now)
	s.handler = s.routes()
	return s, nil
}

// Handler is the whole interface, for a server of one's own.
func (s *Server) Handler() http.Handler { return s.handler }

// Run listens on the configured address and serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	l, err := net.Listen("tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("sidecar: %w", err)
	}
	return s.Serve(ctx, l)
}

// Serve serves on l until ctx ends, then lets running requests finish for 5 s. It closes l, and may be called once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           s.handler,
		TLSConfig:         s.cfg.TLS,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
	}
	s.cfg.Logger.Info("sidecar listens", "address", l.Addr().String())
	watch, stopWatch := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.lag.run(watch, s.watched)
	}()
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		close(s.closing)
		limit, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		stopped <- srv.Shutdown(limit)
	})
	var err error
	if s.cfg.TLS != nil {
		err = srv.ServeTLS(l, "", "")
	} else {
		err = srv.Serve(l)
	}
	if !stop() {
		err = <-stopped
	}
	stopWatch()
	<-done
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("sidecar: %w", err)
	}
	return nil
}
