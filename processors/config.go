package processors

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quiesce/quiesce/codecs"
)

// Config says what a Processor runs and where.
type Config struct {
	// Bootstrap are the brokers to ask first (host:port). Required.
	Bootstrap []string
	// Prefix names the deployment. Default codecs.DefaultPrefix.
	Prefix string
	// Machine is what runs. Required.
	Machine Machine
	// DataDir keeps the local copies of the table, one directory a partition. Losing it costs a recovery, nothing else.
	// Default: quiesce in the user's state directory ($XDG_STATE_HOME or ~/.local/state).
	DataDir string
	// InstanceID is the static group member id; it must be unique in the group and stable over restarts. Default "":
	// dynamic membership.
	InstanceID string
	// ClientID names this client to the brokers. Default "quiesce-" + the machine's role.
	ClientID string
	// Logger gets what operators need to know. Default slog.Default().
	Logger *slog.Logger
	// Registerer gets the metrics. Default nil: none are kept.
	Registerer prometheus.Registerer
	// Security is how to talk to the brokers. Default: plaintext.
	Security Security
	// Timing bounds the waits. Zero fields have the defaults documented there.
	Timing Timing
	// CacheBytes bounds the decoded rows kept, by the memory they take; each partition of the table has an equal part of
	// it, whoever owns it. Rows of unfinished cuts are kept beyond it. Default 64 MiB.
	CacheBytes int
	// ThroughGoka passes messages through goka's own loop instead of from the claim to the machine. Slower; for
	// comparison. Default false.
	ThroughGoka bool
	// Now is the wall clock that deadlines are compared with. Default time.Now.
	Now func() time.Time
	// Hook is called at the named crash points of a cut; see the Point constants. Default nil.
	Hook func(point string, partition int32)

	off rules // rules that a test switched off
}

// Security is how to talk to the brokers.
type Security struct {
	// TLS is the client's TLS configuration; nil = plaintext.
	TLS *tls.Config
	// Mechanism is the SASL mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. "" = none.
	Mechanism string
	User      string
	Password  string
}

// Timing bounds what the runtime waits for.
type Timing struct {
	// Session is the group session time-out: a dead instance's partitions move after it. Default 10 s.
	Session time.Duration
	// Drain bounds the last cut at shut-down or when a partition moves away. Default 10 s.
	Drain time.Duration
	// Cut is the age at which a cut without a waiting observer is closed. Default 20 ms.
	Cut time.Duration
	// MaxCut bounds how long the byte rate can stretch that. Default 1 s.
	MaxCut time.Duration
	// MaxDue bounds how long the byte rate can hold back an output that an observer waits for. Default 100 ms.
	MaxDue time.Duration
	// BytesPerSecond is the rate of row writes per partition above which cuts are stretched. Default 20 MB/s.
	BytesPerSecond int
	// Idle is the wait before an idle partition writes its position and looks for strangers. Default 1 s.
	Idle time.Duration
	// Backoff is the first wait before a failed processor is rebuilt; it grows to a minute. Default 100 ms.
	Backoff time.Duration
	// DeleteRetention is delete.retention.ms of the table: a local copy not written for half of it is discarded.
	// Default 24 h.
	DeleteRetention time.Duration
}

// WithDefaults returns c with every unset field at its documented default.
func (c Config) WithDefaults() Config {
	def(&c.Prefix, codecs.DefaultPrefix)
	if c.DataDir == "" {
		c.DataDir = filepath.Join(stateDir(), "quiesce")
	}
	if c.Machine != nil {
		def(&c.ClientID, "quiesce-"+c.Machine.Role())
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	def(&c.CacheBytes, 64<<20)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Hook == nil {
		c.Hook = func(string, int32) {}
	}
	c.Timing = c.Timing.WithDefaults()
	return c
}

// WithDefaults returns t with every unset field at its documented default.
func (t Timing) WithDefaults() Timing {
	def(&t.Session, 10*time.Second)
	def(&t.Drain, 10*time.Second)
	def(&t.Cut, 20*time.Millisecond)
	def(&t.MaxCut, time.Second)
	def(&t.MaxDue, 100*time.Millisecond)
	def(&t.BytesPerSecond, 20_000_000)
	def(&t.Idle, time.Second)
	def(&t.Backoff, 100*time.Millisecond)
	def(&t.DeleteRetention, 24*time.Hour)
	return t
}

// Validate reports every field that cannot work.
func (c Config) Validate() error {
	var errs []error
	if len(c.Bootstrap) == 0 {
		errs = append(errs, errors.New("no bootstrap server"))
	}
	if c.Machine == nil {
		errs = append(errs, errors.New("no machine"))
	}
	if err := codecs.ValidID("prefix", c.Prefix); err != nil {
		errs = append(errs, err)
	}
	if c.Timing.Session < 0 || c.Timing.Drain < 0 || c.Timing.BytesPerSecond < 0 {
		errs = append(errs, fmt.Errorf("negative timing: %+v", c.Timing))
	}
	switch c.Security.Mechanism {
	case "", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512":
	default:
		errs = append(errs, fmt.Errorf("SASL mechanism %q: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", c.Security.Mechanism))
	}
	return errors.Join(errs...)
}

func def[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// stateDir is where programs of this user keep state; never the temporary directory, which is cleaned behind our back.
func stateDir() string {
	if d := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return d
	}
	if d, err := os.UserHomeDir(); err == nil {
		return filepath.Join(d, ".local", "state")
	}
	return "/var/lib"
}
