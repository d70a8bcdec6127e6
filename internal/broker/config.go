package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// DefaultListen is the address of Config.Listen when it is empty: loopback, a free port.
const DefaultListen = "127.0.0.1:0"

// Config says how an embedded broker runs. The zero value is a broker in memory on a free port of 127.0.0.1.
type Config struct {
	// Listen is the host:port to accept clients on; port 0 takes a free one. Default DefaultListen.
	Listen string
	// Advertise is the host:port told to clients. Default: the address listened on; required when Listen names no
	// single host (0.0.0.0, ::, or an empty host).
	Advertise string
	// DataDir keeps topics, records, groups and transactions across restarts; created when missing. Default "": memory.
	DataDir string
	// Topics are created at start. One that is there already (DataDir) must have as many partitions.
	Topics []Topic
	// AppendTime makes LogAppendTime the default of topics that do not set message.timestamp.type. Default false, as in
	// Apache Kafka.
	AppendTime bool
	// MinSessionTimeout is the shortest session time-out that a group member may ask for. Default 6 s, as in Apache Kafka.
	MinSessionTimeout time.Duration
	// Now is the clock of append times. Default time.Now.
	Now func() time.Time
	// Log gets what goes wrong inside the broker. Default slog.Default().
	Log *slog.Logger
}

// Topic is a topic to create. Configs are topic settings as in Apache Kafka, e.g. "cleanup.policy": "compact".
type Topic struct {
	Name       string
	Partitions int32
	Configs    map[string]string
}

// WithDefaults returns c with every unset field at its documented default.
func (c Config) WithDefaults() Config {
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	if c.MinSessionTimeout == 0 {
		c.MinSessionTimeout = 6 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// Validate reports every field that cannot work.
func (c Config) Validate() error {
	var errs []error
	host, _, err := net.SplitHostPort(c.Listen)
	switch {
	case err != nil:
		errs = append(errs, fmt.Errorf("listen address %q is not host:port: %w", c.Listen, err))
	case c.Advertise == "" && wildcard(host):
		errs = append(errs, fmt.Errorf("listen address %q names no host that clients can connect to: set the advertised address", c.Listen))
	}
	if c.Advertise != "" {
		if _, _, err := net.SplitHostPort(c.Advertise); err != nil {
			errs = append(errs, fmt.Errorf("advertised address %q is not host:port: %w", c.Advertise, err))
		}
	}
	if c.MinSessionTimeout < 0 {
		errs = append(errs, fmt.Errorf("minimum session time-out %s is negative", c.MinSessionTimeout))
	}
	seen := map[string]bool{}
	for _, t := range c.Topics {
		if t.Name == "" || t.Partitions < 1 {
			errs = append(errs, fmt.Errorf("topic %q with %d partitions: needs a name and at least one partition", t.Name, t.Partitions))
		}
		if seen[t.Name] {
			errs = append(errs, fmt.Errorf("topic %q is listed twice", t.Name))
		}
		seen[t.Name] = true
	}
	return errors.Join(errs...)
}

func wildcard(host string) bool {
	if host == "" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsUnspecified()
}
