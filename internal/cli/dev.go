package cli

import (
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker"
	"github.com/quiesce/quiesce/internal/node"
)

func (a *app) devCommand() *cobra.Command {
	var s nodeSettings
	var brokerListen, prefix string
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "One process: embedded broker, all roles, sidecar with dashboard",
		Long: `One process with everything, until interrupted: an embedded broker that any Kafka client can connect to, all roles, and
the sidecar with its dashboard. Without --data-dir nothing is kept.`,
		Example: `  quiesce dev --topology pipeline.yaml --data-dir ./quiesce-data
  quiesce dev --jobs invoices.yaml`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := s.config(cmd, a)
			if err != nil {
				return err
			}
			cfg.Prefix, cfg.DataDir = prefix, ""
			b := broker.Config{Listen: brokerListen, Log: a.log}
			if s.dataDir != "" {
				b.DataDir, cfg.DataDir = filepath.Join(s.dataDir, "broker"), filepath.Join(s.dataDir, "tables")
			}
			if err := b.WithDefaults().Validate(); err != nil {
				return usage(cmd, "%w", err)
			}
			return a.dev(cmd, b, cfg)
		},
	}
	s.flags(cmd, 16)
	f := cmd.Flags()
	f.StringVar(&brokerListen, "broker-listen", "127.0.0.1:9092", "address of the embedded broker")
	f.StringVar(&prefix, "prefix", codecs.DefaultPrefix, "name of the deployment")
	f.StringVar(&s.dataDir, "data-dir", "", "keep topics and tables here (default: in memory and a temporary folder)")
	return cmd
}

func (a *app) dev(cmd *cobra.Command, b broker.Config, cfg node.Config) (err error) {
	k, err := broker.Start(b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	if cfg.DataDir == "" {
		dir, remove, err := tempDir()
		if err != nil {
			return err
		}
		defer remove()
		cfg.DataDir = dir
	}
	cfg.Bootstrap = []string{k.Bootstrap()}
	if err := cfg.WithDefaults().Validate(); err != nil {
		return usage(cmd, "%w", err)
	}
	a.printf("broker at %s\n", k.Bootstrap())
	return a.runNode(cmd, cfg)
}
