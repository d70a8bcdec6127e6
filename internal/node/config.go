package node

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/worker"
	"github.com/quiesce/quiesce/topology"
)

// Config of a node. Bootstrap is required.
type Config struct {
	// Bootstrap are the brokers to ask first.
	Bootstrap []string
	// Prefix names the deployment. Default codecs.DefaultPrefix.
	Prefix string
	// Roles to run. Default: all.
	Roles []string
	// Topologies whose topics are created, and which the sidecar explains.
	Topologies []*topology.Topology
	// Jobs are the job types, their queues, and how jobs are keyed.
	Jobs Jobs
	// Notify are the subscriptions, and how the role notifier delivers.
	Notify Notify
	// Workers work off queues in this process, beside the roles. What the node knows need not be set: brokers, prefix,
	// options, retries. Default: none.
	Workers []worker.Config
	// Partitions of the deployment's own topics where they have to be created. Default: that of package topology.
	Partitions int32
	// Replication of topics that have to be created. Default: the brokers'.
	Replication int16
	// DataDir keeps the local copies of tables; losing it costs a recovery. Default: that of package processors.
	DataDir string
	// InstanceID is a name that is stable over restarts and unique among the instances; "" = none.
	InstanceID string
	// HTTP is how the sidecar is reached.
	HTTP
	// Security says how to talk to the brokers. Default: plaintext.
	Security processors.Security
	// Client are the options of franz-go clients that say the same.
	Client []kgo.Opt
	// Log gets what operators need to know. Default slog.Default().
	Log *slog.Logger
}

// HTTP is how the sidecar is reached.
type HTTP struct {
	// Listen is its address. Default: that of package sidecar.
	Listen string
	// Token is asked of callers. Needed where it listens beyond loopback.
	Token string
	// TLS, nil = plain HTTP.
	TLS *tls.Config
}

// WithDefaults fills in the documented defaults.
func (c Config) WithDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = codecs.DefaultPrefix
	}
	if len(c.Roles) == 0 {
		c.Roles = Roles()
	}
	if c.Replication == 0 {
		c.Replication = -1
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Client = append([]kgo.Opt{kgo.SeedBrokers(c.Bootstrap...)}, c.Client...)
	return c
}

// Validate reports every setting that cannot work.
func (c Config) Validate() error {
	var errs []error
	if len(c.Bootstrap) == 0 {
		errs = append(errs, errors.New("no bootstrap server"))
	}
	for _, r := range c.Roles {
		if !slices.Contains(Roles(), r) {
			errs = append(errs, fmt.Errorf("role %q: one of %s", r, strings.Join(Roles(), ", ")))
		}
	}
	if err := codecs.ValidID("prefix", c.Prefix); err != nil {
		errs = append(errs, err)
	}
	if err := c.settings().Validate(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, c.validateWorkers(), c.Jobs.validate(), c.Notify.validate())...)
}

// validateWorkers wants the queue of each worker among those that every node knows.
func (c Config) validateWorkers() error {
	var errs []error
	seen := map[string]bool{}
	for _, w := range c.Workers {
		if err := w.WithDefaults().Validate(); err != nil {
			errs = append(errs, err)
		}
		if !slices.ContainsFunc(c.Jobs.AllQueues(), func(q topology.Queue) bool { return q.Name == w.Queue }) {
			errs = append(errs, fmt.Errorf("worker of queue %s: no job type names it, nor does Jobs.Queues", w.Queue))
		}
		if seen[w.Queue] {
			errs = append(errs, fmt.Errorf("worker of queue %s: there are two in one process", w.Queue))
		}
		seen[w.Queue] = true
	}
	return errors.Join(errs...)
}

// member are the options of franz-go clients that are members of groups.
func (c Config) member() []kgo.Opt {
	if c.InstanceID == "" {
		return c.Client
	}
	return append(slices.Clone(c.Client), kgo.InstanceID(c.InstanceID))
}

func (c Config) settings() topology.Settings {
	return topology.Settings{Prefix: c.Prefix, Partitions: c.Partitions, Replication: c.Replication, Queues: c.Jobs.AllQueues()}
}
