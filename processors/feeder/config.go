package feeder

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/topology"
)

// Config says what is fed. Topology, Bootstrap and Batch are required.
type Config struct {
	// Topology declares where the records go: to its source.
	Topology *topology.Topology
	// Bootstrap is host:port of one or more brokers, separated by commas.
	Bootstrap string
	// Prefix is the deployment. Default codecs.DefaultPrefix.
	Prefix string
	// Batch is the batch id.
	Batch string
	// Run is the run id. Default: that of the checkpoint, else a new ULID. Required with several feeders: all name the same.
	Run string
	// Mode is the mode of tracking. Default topology.ModeLedger.
	Mode string
	// Feeders is how many feeders share the batch, Feeder which of them this is, from 0. Default 1 and 0. Every feeder
	// has its own index space; the batch is sealed when all are.
	Feeders, Feeder uint32
	// Start holds the rest of START: policy, deadlines, labels, owner, reuse, ... What the feeder decides itself (run,
	// mode, feeders, topology, units, legs) is overwritten. All feeders of a batch give the same. Default: empty.
	Start *codecs.BatchStart
	// Checkpoint is the file that makes the feeding resumable. Default "": none, a restart is a new run.
	Checkpoint string
	// CheckpointEvery is the time between writes of the checkpoint. Default 500 ms.
	CheckpointEvery time.Duration
	// ClientID names the process. Default feeder@<host name>.
	ClientID string
	// Log gets what goes wrong. Default slog.Default().
	Log *slog.Logger
	// Options are more options of the client (TLS, SASL, ...).
	Options []kgo.Opt
}

// WithDefaults returns c with every unset field at its documented default, but for Run.
func (c Config) WithDefaults() Config {
	set(&c.Prefix, codecs.DefaultPrefix)
	set(&c.Mode, topology.ModeLedger)
	set(&c.Feeders, 1)
	set(&c.CheckpointEvery, 500*time.Millisecond)
	if c.ClientID == "" {
		host, err := os.Hostname()
		if err != nil || host == "" {
			host = "unknown"
		}
		c.ClientID = "feeder@" + host
	}
	if c.Log == nil {
		c.Log = slog.Default()
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
	c = c.WithDefaults()
	var errs []error
	add := func(err error) { errs = append(errs, err) }
	if c.Topology == nil {
		add(errors.New("no topology"))
	} else if err := c.Topology.Check(topology.Check{Mode: c.Mode, Prefix: c.Prefix}); err != nil {
		add(fmt.Errorf("topology %s: %w", c.Topology.Name, err))
	}
	if c.Bootstrap == "" {
		add(errors.New("no bootstrap server"))
	}
	if err := codecs.ValidID("batch", c.Batch); err != nil {
		add(err)
	}
	if c.Run != "" {
		if err := codecs.ValidID("run", c.Run); err != nil {
			add(err)
		}
	} else if c.Feeders > 1 {
		add(errors.New("several feeders share a run: name it"))
	}
	if c.Feeders > codecs.MaxFeeders || c.Feeder >= c.Feeders {
		add(fmt.Errorf("feeder %d of %d: from 0, at most %d feeders", c.Feeder, c.Feeders, codecs.MaxFeeders))
	}
	if c.CheckpointEvery < 0 {
		add(errors.New("a negative time between checkpoints"))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("feeder of batch %s: %w", c.Batch, err)
	}
	return nil
}
