package node

import (
	"context"
	"strings"

	"github.com/quiesce/quiesce/processors/dispatcher"
)

func (n *Node) startDispatcher(ctx context.Context) error {
	cfg := dispatcher.Config{Bootstrap: strings.Join(n.cfg.Bootstrap, ","), Prefix: n.cfg.Prefix, Log: n.cfg.Log,
		Counters: &dispatcher.Counters{}, Options: n.cfg.member()}
	n.registry.MustRegister(dispatcherMetrics(cfg.Counters))
	n.run(RoleDispatcher, func() error {
		return n.again(ctx, "dispatcher failed, started again", func() error { return dispatcher.Run(ctx, cfg) },
			func(error) bool { return false })
	})
	return nil
}
