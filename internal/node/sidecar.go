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

// startSidecar listens first, so that the address is known when Start returns; it answers reads when its view is loaded.
func (n *Node) startSidecar(ctx context.Context) error {
	client, err := kgo.NewClient(n.cfg.Client...)
	if err != nil {
		return err
	}
	n.closers = append(n.closers, client.Close)
	log, err := sidecar.OpenControlLog(n.cfg.Prefix, "sidecar", n.cfg.Client...)
	if err != nil {
		return err
	}
	n.closers = append(n.closers, log.Close)
	view, err := table.New(table.Config{Bootstrap: n.cfg.Bootstrap, Prefix: n.cfg.Prefix, DataDir: n.cfg.DataDir, Security: n.cfg.Security,
		Logger: n.cfg.Log})
	if err != nil {
		return err
	}
	listen := n.cfg.Listen
	if listen == "" {
		listen = defaultListen
	}
	s, err := sidecar.New(sidecar.Config{Listen: listen, Token: n.cfg.Token, TLS: n.cfg.TLS,
		Sources: sidecar.Sources{Batches: view, Log: log, Events: sidecar.NewEventFeed(n.cfg.Prefix, client, n.cfg.Client...),
			Groups: sidecar.NewKafkaGroups(client)},
		Topologies: n.cfg.Topologies, Logger: n.cfg.Log, Registry: n.registry, Gatherer: n.registry})
	if err != nil {
		return err
	}
	if n.listener, err = net.Listen("tcp", listen); err != nil {
		return err
	}
	n.run("sidecar", func() error { return s.Serve(ctx, n.listener) })
	n.run("view", func() error { return view.Run(ctx) })
	return nil
}
