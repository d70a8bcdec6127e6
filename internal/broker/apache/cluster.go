//go:build unix

package apache

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
)

//go:embed log4j2.properties
var log4j []byte

// Cluster is a running Apache Kafka cluster in a temporary directory. Its methods are for one goroutine at a time.
type Cluster struct {
	cfg   Config
	dir   string
	nodes []*node
}

// Start formats and starts a cluster and waits until all nodes answer. The caller must Close it, whatever happens.
func Start(ctx context.Context, in Install, cfg Config) (*Cluster, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("start Apache Kafka: %w", err)
	}
	c := &Cluster{cfg: cfg}
	if err := c.start(ctx, in); err != nil {
		return nil, fmt.Errorf("start Apache Kafka: %w", errors.Join(err, c.Close()))
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, in Install) error {
	all, err := freePorts(c.cfg.Nodes)
	if err != nil {
		return err
	}
	if c.dir, err = os.MkdirTemp("", "quiesce-kafka-"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.dir, "log4j2.properties"), log4j, 0o600); err != nil {
		return err
	}
	id := clusterID()
	for i := range all {
		n := &node{id: i + 1, port: all[i].broker, install: in, dir: filepath.Join(c.dir, fmt.Sprint(i+1)), heap: c.cfg.Heap}
		c.nodes = append(c.nodes, n)
		if err := n.prepare(properties(c.cfg, all, i, filepath.Join(n.dir, "data"))); err != nil {
			return err
		}
	}
	format, formatCtx := errgroup.WithContext(ctx)
	for _, n := range c.nodes {
		format.Go(func() error { return n.format(formatCtx, id) })
	}
	if err := format.Wait(); err != nil {
		return err
	}
	for _, n := range c.nodes {
		if err := n.start(); err != nil {
			return err
		}
	}
	for _, n := range c.nodes {
		if err := n.waitReady(ctx, c.cfg.StartTimeout, len(c.nodes)); err != nil {
			return err
		}
	}
	return nil
}

// clusterID is a random cluster id as Kafka writes them: 16 bytes in URL-safe base64, not starting with a dash.
func clusterID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return "q" + base64.RawURLEncoding.EncodeToString(b[:])[1:]
}

// Bootstrap is the addresses of all nodes, host:port separated by commas.
func (c *Cluster) Bootstrap() string {
	var addrs []string
	for _, n := range c.nodes {
		addrs = append(addrs, n.addr())
	}
	return strings.Join(addrs, ",")
}

// Kill ends a node (1, 2, 3) with SIGKILL and waits until it is gone.
func (c *Cluster) Kill(id int) error { return c.on(id, "kill", (*node).kill) }

// Stop ends a node gracefully: its leaders move first.
func (c *Cluster) Stop(id int) error { return c.on(id, "stop", (*node).stop) }

// Pause freezes a node (SIGSTOP), as a machine that hangs.
func (c *Cluster) Pause(id int) error { return c.on(id, "pause", (*node).pause) }

// Resume lets a paused node go on.
func (c *Cluster) Resume(id int) error { return c.on(id, "resume", (*node).resume) }

// Restart starts a node that was killed or stopped, with its data, and waits until it answers.
func (c *Cluster) Restart(ctx context.Context, id int) error {
	return c.on(id, "restart", func(n *node) error {
		if err := n.start(); err != nil {
			return err
		}
		return n.waitReady(ctx, c.cfg.StartTimeout, 1)
	})
}

func (c *Cluster) on(id int, verb string, do func(*node) error) error {
	if id < 1 || id > len(c.nodes) {
		return fmt.Errorf("%s node %d: the cluster has nodes 1 to %d", verb, id, len(c.nodes))
	}
	if err := do(c.nodes[id-1]); err != nil {
		return fmt.Errorf("%s node %d: %w", verb, id, err)
	}
	return nil
}

// Close kills all nodes and removes their data.
func (c *Cluster) Close() error {
	var errs []error
	for _, n := range c.nodes {
		if n.running() {
			errs = append(errs, n.kill())
		}
	}
	if c.dir != "" {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	return errors.Join(errs...)
}
