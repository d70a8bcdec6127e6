package worker

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// Config says what Run runs. Bootstrap, Queue and one of Handler and Splitter are required.
type Config struct {
	// Bootstrap is host:port of one or more brokers, separated by commas.
	Bootstrap string
	// Prefix is the deployment. Default codecs.DefaultPrefix.
	Prefix string
	// Queue is the name of the queue; its topics exist.
	Queue string
	// Handler runs sub-jobs, tasks of steps, and deliveries.
	Handler Handler
	// Splitter runs splits.
	Splitter Splitter
	// Concurrency is how many handlers run at once. Default 16.
	Concurrency int
	// DrainTimeout is how long a shutdown waits for handlers before it interrupts them. Default 30 s.
	DrainTimeout time.Duration
	// Patience is how long an interrupted handler may take to return. Default 1 s.
	Patience time.Duration
	// Stuck is how many handlers may ignore their time-out before Run gives up. Default 3.
	Stuck int
	// ReportAfter is the longest time that an outcome waits for others to share its report. Default 4 ms.
	ReportAfter time.Duration
	// Retries are the delays of the queue's retry tiers. Default those of topology.Queue.
	Retries []time.Duration
	// ClientID names the process in reports. Default worker@<host name>.
	ClientID string
	// Log gets what goes wrong. Default slog.Default().
	Log *slog.Logger
	// Counters counts what the worker did, for metrics; may be shared and read at any time. Default: a private one.
	Counters *Counters
	// Options are more options of the clients (TLS, SASL, static membership, ...).
	Options []kgo.Opt
}

// WithDefaults returns c with every unset field at its documented default.
func (c Config) WithDefaults() Config {
	set(&c.Prefix, codecs.DefaultPrefix)
	set(&c.Concurrency, 16)
	set(&c.DrainTimeout, 30*time.Second)
	set(&c.Patience, time.Second)
	set(&c.Stuck, 3)
	set(&c.ReportAfter, 4*time.Millisecond)
	if c.ClientID == "" {
		host, err := os.Hostname()
		if err != nil || host == "" {
			host = "unknown"
		}
		c.ClientID = "worker@" + host
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Counters == nil {
		c.Counters = &Counters{}
	}
	return c
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate reports everything that cannot work.
func (c Config) Validate() error {
	var errs []error
	if err := codecs.ValidID("queue", c.Queue); err != nil {
		errs = append(errs, err)
	}
	if c.Handler == nil && c.Splitter == nil {
		errs = append(errs, errors.New("neither a handler nor a splitter"))
	}
	if c.Concurrency < 0 || c.DrainTimeout < 0 || c.Patience < 0 || c.Stuck < 0 || c.ReportAfter < 0 {
		errs = append(errs, errors.New("a negative number or duration"))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("worker of queue %s: %w", c.Queue, err)
	}
	return nil
}
