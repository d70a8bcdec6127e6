package node

import (
	"context"

	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/batch"
	"github.com/quiesce/quiesce/processors/stats"
)

// startMachine runs a machine as a goka group.
func (n *Node) startMachine(ctx context.Context, m processors.Machine) error {
	p, err := processors.New(processors.Config{
		Bootstrap: n.cfg.Bootstrap, Prefix: n.cfg.Prefix, Machine: m, DataDir: n.cfg.DataDir, InstanceID: n.cfg.InstanceID,
		Logger: n.cfg.Log, Registerer: n.registry, Security: n.cfg.Security,
	})
	if err != nil {
		return err
	}
	n.run(m.Role(), func() error { return p.Run(ctx) })
	return nil
}

func (n *Node) startController(ctx context.Context) error {
	return n.startMachine(ctx, batch.New(batch.Config{}))
}

func (n *Node) startStats(ctx context.Context) error { return n.startMachine(ctx, stats.New()) }
