package node

import (
	"context"
	"net"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/table"
)

// defaultListen is the sidecar's address when none is configured.
const defaultListen = "127.0.0.1:7878"

// startSidecar listens first, so that the address is known when Start returns; it answers reads when its views are loaded.
func (n *Node) startSidecar(ctx context.Context) error {
	sources, err := n.sources(ctx)
	if err != nil {
		return err
	}
	listen := n.cfg.Listen
	if listen == "" {
		listen = defaultListen
	}
	s, err := sidecar.New(sidecar.Config{Listen: listen, Token: n.cfg.Token, TLS: n.cfg.TLS, Sources: sources,
		CustomerKeys: n.cfg.Jobs.CustomerKeys, Queues: n.cfg.Jobs.names(), Topologies: n.cfg.Topologies, Logger: n.cfg.Log, Registry: n.registry, Gatherer: n.registry})
	if err != nil {
		return err
	}
	if n.listener, err = net.Listen("tcp", listen); err != nil {
		return err
	}
	n.run("sidecar", func() error { return s.Serve(ctx, n.listener) })
	return nil
}

// sources opens what the sidecar reads and writes, and starts its views.
func (n *Node) sources(ctx context.Context) (s sidecar.Sources, err error) {
	client, err := kgo.NewClient(n.cfg.Client...)
	if err != nil {
		return s, err
	}
	n.closers = append(n.closers, client.Close)
	control, err := sidecar.OpenControlLog(n.cfg.Prefix, "sidecar", n.cfg.Client...)
	if err != nil {
		return s, err
	}
	n.closers = append(n.closers, control.Close)
	jobLog, err := sidecar.OpenJobLog(n.cfg.Prefix, "sidecar", n.cfg.Client...)
	if err != nil {
		return s, err
	}
	n.closers = append(n.closers, jobLog.Close)
	view := table.Config{Bootstrap: n.cfg.Bootstrap, Prefix: n.cfg.Prefix, DataDir: n.cfg.DataDir, Security: n.cfg.Security, Logger: n.cfg.Log}
	batches, err := table.New(view)
	if err != nil {
		return s, err
	}
	jobs, err := table.NewJobs(view)
	if err != nil {
		return s, err
	}
	statistics, err := table.NewStats(view)
	if err != nil {
		return s, err
	}
	n.run("view of batches", func() error { return batches.Run(ctx) })
	n.run("view of jobs", func() error { return jobs.Run(ctx) })
	n.run("view of statistics", func() error { return statistics.Run(ctx) })
	return sidecar.Sources{Batches: batches, Log: control, Events: sidecar.NewEventFeed(n.cfg.Prefix, client, n.cfg.Client...),
		Groups: sidecar.NewKafkaGroups(client), Jobs: jobs, JobLog: jobLog, Stats: statistics}, nil
}
