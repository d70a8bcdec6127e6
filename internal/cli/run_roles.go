package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/internal/node"
)

// nodeSettings are what commands that run roles share.
type nodeSettings struct {
	jobs        jobSettings
	topologies  []string
	partitions  int32
	replication int16
	dataDir     string
	listen      string
	token       string
}

// flags gives cmd the flags; queues get queuePartitions unless that is said.
func (s *nodeSettings) flags(cmd *cobra.Command, queuePartitions int32) {
	s.jobs.flags(cmd, queuePartitions)
	f := cmd.Flags()
	f.StringSliceVar(&s.topologies, "topology", nil, "topology files: their topics are created, the sidecar explains them")
	f.Int32Var(&s.partitions, "partitions", 0, "partitions of the deployment's own topics where they have to be created (default 8)")
	f.Int16Var(&s.replication, "replication", -1, "replicas of topics that have to be created (-1: the brokers' default)")
	f.StringVar(&s.listen, "listen", "127.0.0.1:7878", "address of the sidecar")
	f.StringVar(&s.token, "token", "", "token of the sidecar; needed when it listens beyond this machine (better: QUIESCE_TOKEN)")
}

// config makes the part of a node's configuration that all of them share.
func (s *nodeSettings) config(cmd *cobra.Command, a *app) (node.Config, error) {
	cfg := node.Config{Partitions: s.partitions, Replication: s.replication, DataDir: s.dataDir, HTTP: node.HTTP{Listen: s.listen, Token: s.token}, Log: a.log}
	for _, name := range s.topologies {
		t, err := loadTopology(cmd, name, "")
		if err != nil {
			return cfg, err
		}
		cfg.Topologies = append(cfg.Topologies, t)
	}
	var err error
	if cfg.Jobs, err = s.jobs.load(cmd); err != nil {
		return cfg, err
	}
	if cfg.Notify, err = a.sections.notify(); err != nil {
		return cfg, usage(cmd, "configuration: %w", err)
	}
	return cfg, nil
}

func (a *app) runCommand() *cobra.Command {
	var c connection
	var s nodeSettings
	var roles []string
	var instance string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run roles of a deployment against Kafka",
		Long: `Run roles of a deployment against Kafka, until interrupted. At start the topics are created where they are missing and
verified where they exist; one that breaks a guarantee is an error, never altered.`,
		Example: `  quiesce run --roles controller,sidecar --bootstrap-server kafka-1:9092 --topology pipeline.yaml
  quiesce run --bootstrap-server kafka-1:9092 --jobs invoices.yaml,nightly.yaml`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.validate(cmd); err != nil {
				return err
			}
			cfg, err := s.config(cmd, a)
			if err != nil {
				return err
			}
			cfg.Bootstrap, cfg.Prefix, cfg.Roles, cfg.InstanceID = c.bootstrap, c.prefix, roles, instance
			cfg.Security, cfg.Client = c.security(), c.auth()
			if err := cfg.WithDefaults().Validate(); err != nil {
				return usage(cmd, "%w", err)
			}
			return a.runNode(cmd, cfg)
		},
	}
	c.flags(cmd)
	s.flags(cmd, 128)
	f := cmd.Flags()
	f.StringSliceVar(&roles, "roles", node.Roles(), "what this process does: "+strings.Join(node.Roles(), ", "))
	f.StringVar(&s.dataDir, "data-dir", "", "local copies of tables; losing them costs a recovery (default: the user's state folder)")
	f.StringVar(&instance, "instance-id", "", "a name that is stable over restarts and unique: a restart then moves no partitions")
	return cmd
}

// runNode runs a node until the command is interrupted.
func (a *app) runNode(cmd *cobra.Command, cfg node.Config) error {
	n, err := node.Start(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	a.printf("running: %s\n", strings.Join(cfg.WithDefaults().Roles, ", "))
	if n.Address() != "" {
		a.printf("dashboard and HTTP at %s\n", n.Address())
	}
	<-n.Done(cmd.Context())
	return n.Stop()
}
