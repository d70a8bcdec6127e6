package dispatcher

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// Config says how a dispatcher runs. Bootstrap is required.
type Config struct {
	// Bootstrap is host:port of one or more brokers, separated by commas.
	Bootstrap string
	// Prefix is the deployment. Default codecs.DefaultPrefix.
	Prefix string
	// CacheBytes bounds the memory of the manifest chunks that are kept, but for the one in use. Default 64 MiB.
	CacheBytes int
	// QueueWait is how long an order waits for a queue that does not exist. Default 30 s.
	QueueWait time.Duration
	// ClientID names the process. Default dispatcher@<host name>.
	ClientID string
	// Log gets what goes wrong. Default slog.Default().
	Log *slog.Logger
	// Counters counts what the dispatcher did, for metrics; may be shared and read at any time. Default: a private one.
	Counters *Counters
	// Options are more options of the clients (TLS, SASL, ...).
	Options []kgo.Opt
}

// Counters counts what a dispatcher did since it started. Safe for concurrent use.
type Counters struct {
	Orders, Tasks, ChunksRead, ChunksGone, DeadLetters atomic.Uint64
}

// WithDefaults returns c with every unset field at its documented default.
func (c Config) WithDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = codecs.DefaultPrefix
	}
	if c.CacheBytes == 0 {
		c.CacheBytes = 64 << 20
	}
	if c.QueueWait == 0 {
		c.QueueWait = 30 * time.Second
	}
	if c.ClientID == "" {
		host, err := os.Hostname()
		if err != nil || host == "" {
			host = "unknown"
		}
		c.ClientID = "dispatcher@" + host
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Counters == nil {
		c.Counters = &Counters{}
	}
	return c
}

// Validate reports what cannot work.
func (c Config) Validate() error {
	if c.Bootstrap == "" {
		return errors.New("dispatcher: no bootstrap server")
	}
	if c.CacheBytes < 0 || c.QueueWait < 0 {
		return fmt.Errorf("dispatcher: cache of %d bytes, wait of %v: not negative", c.CacheBytes, c.QueueWait)
	}
	return nil
}
