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
	"github.com/quiesce/quiesce/topology"
)

// Roles that a node can have.
const (
	RoleController = "controller"
	RoleSidecar    = "sidecar"
)

// Roles returns all of them.
func Roles() []string { return []string{RoleController, RoleSidecar} }

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
	// Partitions of the deployment's own topics where they have to be created. Default: that of package topology.
	Partitions int32
	// Replication of topics that have to be created. Default: the brokers'.
	Replication int16
	// DataDir keeps the local copies of tables; losing it costs a recovery. Default: that of package processors.
	DataDir string
	// InstanceID is a name that is stable over restarts and unique among the instances; "" = none.
	InstanceID string
	// Listen is the sidecar's address. Default: that of package sidecar.
	Listen string
	// Token of the sidecar. Needed where it listens beyond loopback.
	Token string
	// TLS of the sidecar; nil = plain HTTP.
	TLS *tls.Config
	// Security says how to talk to the brokers. Default: plaintext.
	Security processors.Security
	// Client are the options of franz-go clients that say the same.
	Client []kgo.Opt
	// Log gets what operators need to know. Default slog.Default().
	Log *slog.Logger
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
	return errors.Join(errs...)
}

func (c Config) settings() topology.Settings {
	return topology.Settings{Prefix: c.Prefix, Partitions: c.Partitions, Replication: c.Replication}
}
