package stage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/trace"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/topology"
)

// Config says what Run runs. Topology, Stage, Bootstrap and Handler are required.
type Config struct {
	// Topology declares the stage: its inputs, outputs and consumer group.
	Topology *topology.Topology
	// Older are versions of the topology whose batches may still be open.
	Older []*topology.Topology
	// Stage is the stage's name in the topology.
	Stage string
	// Bootstrap is host:port of one or more brokers, separated by commas.
	Bootstrap string
	// Prefix is the deployment. Default codecs.DefaultPrefix.
	Prefix string
	// Handler handles the records.
	Handler Handler
	// Flow says how often and how much; see Flow.
	Flow Flow
	// Untagged hands records that belong to no batch to the handler too, which may send them on as such. Default false:
	// they go to the dead letter.
	Untagged bool
	// ClientID names the process in reports. Default <stage>@<host name>.
	ClientID string
	// Tracer starts a span for each record, below the one that its traceparent names. Default: no spans, traceparent is
	// passed through.
	Tracer trace.Tracer
	// Log gets what goes wrong. Default slog.Default().
	Log *slog.Logger
	// Options are more options of the client (TLS, SASL, ...).
	Options []kgo.Opt
	// Counters counts what the stage did, for metrics; may be shared and read at any time. Default: a private one.
	Counters *Counters
	// Hook is called at the points named Point...; an error ends the session at that point as a crash would: nothing
	// more is sent or committed. For tests.
	Hook func(Point) error
}

// Flow bounds the work of a stage. The zero value of a field is its default.
type Flow struct {
	// Attempts at a record before its outcome is failed. Default 3.
	Attempts int
	// Backoff is the pause before the second attempt; it doubles for each one after. Default 20 ms.
	Backoff time.Duration
	// ReportAfter is the longest time an outcome waits for others to share its report. Default 4 ms.
	ReportAfter time.Duration
	// ReportCount is the number of outcomes that do not wait any longer. Default 1,000.
	ReportCount int
	// CommitEvery is the time between offset commits. Default 200 ms.
	CommitEvery time.Duration
	// Buffer is the number of records that may wait for the handler in each partition. Default 4,000.
	Buffer int
	// DrainFor bounds what a handler may take when its partition goes elsewhere or the stage stops. Default 10 s.
	DrainFor time.Duration
	// MaxRecord is the largest output in bytes, with its headers and without compression; never more than the
	// max.message.bytes of its topic. An output that is larger fails its record. Default 900,000.
	MaxRecord int
}

// WithDefaults returns c with every unset field at its documented default.
func (c Config) WithDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = codecs.DefaultPrefix
	}
	if c.ClientID == "" {
		host, err := os.Hostname()
		if err != nil || host == "" {
			host = "unknown"
		}
		c.ClientID = c.Stage + "@" + host
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Counters == nil {
		c.Counters = &Counters{}
	}
	if c.Hook == nil {
		c.Hook = func(Point) error { return nil }
	}
	c.Flow = c.Flow.WithDefaults()
	return c
}

// WithDefaults returns f with every unset field at its documented default.
func (f Flow) WithDefaults() Flow {
	set(&f.Attempts, 3)
	set(&f.Backoff, 20*time.Millisecond)
	set(&f.ReportAfter, 4*time.Millisecond)
	set(&f.ReportCount, 1000)
	set(&f.CommitEvery, 200*time.Millisecond)
	set(&f.Buffer, 4000)
	set(&f.DrainFor, 10*time.Second)
	set(&f.MaxRecord, 900_000)
	return f
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate reports everything that cannot work.
func (c Config) Validate() error { return c.ValidateFor(topology.ClientLibrary) }

// ValidateFor is Validate for a stage that the topology declares with that client. Only the library's own has a Handler.
func (c Config) ValidateFor(client string) error {
	c = c.WithDefaults()
	var errs []error
	if c.Topology == nil {
		return errors.New("stage: no topology")
	}
	if err := c.Topology.Check(topology.Check{Prefix: c.Prefix}); err != nil {
		errs = append(errs, fmt.Errorf("topology %s: %w", c.Topology.Name, err))
	}
	s, ok := c.Topology.Stages[c.Stage]
	if !ok {
		errs = append(errs, fmt.Errorf("topology %s has no stage %q", c.Topology.Name, c.Stage))
	}
	if ok && s.ClientOf() != client {
		errs = append(errs, fmt.Errorf("it is declared with client: %s, this is the wrapper for client: %s", s.ClientOf(), client))
	}
	if c.Bootstrap == "" {
		errs = append(errs, errors.New("no bootstrap server"))
	}
	if c.Handler == nil && client == topology.ClientLibrary {
		errs = append(errs, errors.New("no handler"))
	}
	f := c.Flow
	if f.Attempts < 0 || f.Backoff < 0 || f.ReportAfter < 0 || f.ReportCount < 0 || f.CommitEvery < 0 || f.Buffer < 0 ||
		f.DrainFor < 0 || f.MaxRecord < 0 {
		errs = append(errs, errors.New("a negative number in flow"))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stage %s: %w", c.Stage, err)
	}
	return nil
}

// Run runs an instance of the stage until ctx is done, then drains it. It comes back with an error only when it could
// never work: a configuration that is wrong, topics that are not as declared. Everything else is tried again.
func Run(ctx context.Context, cfg Config) error {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return err
	}
	return supervise(ctx, cfg)
}
