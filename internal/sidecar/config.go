package sidecar

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quiesce/quiesce/topology"
)

// Config of a sidecar. The zero value of a field means the default that its comment gives.
type Config struct {
	Listen string // address; default 127.0.0.1:7878
	// Token is asked of every request but /healthz, /readyz and the page itself. Needed for any address that is not
	// loopback. None by default.
	Token string
	TLS   *tls.Config // with a client CA pool it replaces the token; default plain HTTP

	Sources
	Limits

	// CustomerKeys says that the row of a job has the key customer 0x00 job, as a limit per customer needs it. Default: the
	// key is the job's id.
	CustomerKeys bool

	// Topologies that explain and /v1/topology know.
	Topologies []*topology.Topology

	// Queues that the deployment has, for the metric of the workers wanted.
	Queues []string

	Now      func() time.Time      // default time.Now
	Logger   *slog.Logger          // default slog.Default()
	Registry prometheus.Registerer // default a new registry
	Gatherer prometheus.Gatherer   // what /metrics prints; default the new registry
}

// Sources are where a sidecar reads and writes.
type Sources struct {
	Batches Batches // required
	Log     Log     // control topic; required
	Events  Feed    // event topic; without it /v1/events answers 501
	Groups  Groups  // offsets and members of consumer groups; without it explain shows rows only
	Jobs    Jobs    // without it /v1/jobs answers 501
	JobLog  Log     // jobs topic; required with Jobs
	Stats   Stats   // without it /v1/stats answers 501
}

// readiness of everything that is read: the least loaded view speaks for all.
func (s Sources) readiness() Readiness {
	r := s.Batches.Readiness()
	add := func(o Readiness) {
		r = Readiness{Percent: min(r.Percent, o.Percent), OK: r.OK && o.OK, Stale: r.Stale || o.Stale}
	}
	if s.Jobs != nil {
		add(s.Jobs.Readiness())
	}
	if s.Stats != nil {
		add(s.Stats.Readiness())
	}
	return r
}

// Limits of what one request may take.
type Limits struct {
	AtLeastTimeout time.Duration // longest wait of at_least; default 10 s
	WaitTimeout    time.Duration // longest wait of ?wait=; default 60 s
	Heartbeat      time.Duration // between comments in a silent event stream; default 15 s
	MaxStreams     int           // event streams at once; default 256
	ScanRows       int           // rows that one list page looks at; default 1,000
}

// WithDefaults returns c with every unset field filled in.
func (c Config) WithDefaults() Config {
	if c.Listen == "" {
		c.Listen = "127.0.0.1:7878"
	}
	c.Limits = c.Limits.withDefaults()
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Registry == nil {
		reg := prometheus.NewRegistry()
		c.Registry = reg
		if c.Gatherer == nil {
			c.Gatherer = reg
		}
	}
	if c.Gatherer == nil {
		c.Gatherer = prometheus.DefaultGatherer
	}
	return c
}

func (c Limits) withDefaults() Limits {
	if c.AtLeastTimeout == 0 {
		c.AtLeastTimeout = 10 * time.Second
	}
	if c.WaitTimeout == 0 {
		c.WaitTimeout = time.Minute
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = 15 * time.Second
	}
	if c.MaxStreams == 0 {
		c.MaxStreams = 256
	}
	if c.ScanRows == 0 {
		c.ScanRows = 1000
	}
	return c
}

// Validate names what is missing or unsafe.
func (c Config) Validate() error {
	if c.Batches == nil || c.Log == nil {
		return errors.New("sidecar: needs the table of batches and the control topic")
	}
	if c.Jobs != nil && c.JobLog == nil {
		return errors.New("sidecar: the table of jobs needs the jobs topic")
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("sidecar: listen address %q: %w", c.Listen, err)
	}
	if !c.guarded() && !loopback(host) {
		return fmt.Errorf("sidecar: %s is not a loopback address: set a token or client certificates", c.Listen)
	}
	return nil
}

// guarded says whether callers have to prove who they are.
func (c Config) guarded() bool {
	return c.Token != "" || c.TLS != nil && c.TLS.ClientAuth == tls.RequireAndVerifyClientCert
}

// loopback says whether only this machine can reach a host name or address. An empty host listens everywhere.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
