package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/quiesce/quiesce/internal/topics"
)

// Node is a process that runs roles of a deployment.
type Node struct {
	cfg      Config
	listener net.Listener
	registry *prometheus.Registry
	ctx      context.Context // ends with the first role that fails
	cancel   context.CancelFunc
	group    *errgroup.Group
	closers  []func()
}

// Start creates and verifies the topics, then runs the roles until Stop, or until one of them fails for good.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	if err := applyTopics(ctx, cfg); err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	n := &Node{cfg: cfg, registry: prometheus.NewRegistry()}
	ctx, n.cancel = context.WithCancel(ctx)
	n.group, n.ctx = errgroup.WithContext(ctx)
	if err := n.start(n.ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("node: %w", err), n.Stop())
	}
	return n, nil
}

func applyTopics(ctx context.Context, cfg Config) error {
	client, err := kgo.NewClient(cfg.Client...)
	if err != nil {
		return err
	}
	defer client.Close()
	m, err := topics.New(topics.Config{Client: client})
	if err != nil {
		return err
	}
	own := cfg.settings()
	users, err := own.Specs(cfg.Topologies...)
	if err != nil {
		return err
	}
	_, err = m.Apply(ctx, append(own.System(), users...))
	return err
}

func (n *Node) start(ctx context.Context) error {
	for _, s := range n.starters() {
		if err := s.start(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.role, err)
		}
	}
	for _, w := range n.cfg.Workers {
		n.startWorker(ctx, w)
	}
	return nil
}

// run gives a role a goroutine that Stop waits for.
func (n *Node) run(role string, fn func() error) {
	n.group.Go(func() error {
		if err := fn(); err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("%s: %w", role, err)
		}
		return nil
	})
}

// Address is where the sidecar listens, as a URL; "" without one.
func (n *Node) Address() string {
	if n.listener == nil {
		return ""
	}
	scheme := "http"
	if n.cfg.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + n.listener.Addr().String()
}

// Done is closed when ctx ends or a role has failed for good.
func (n *Node) Done(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	context.AfterFunc(ctx, func() { n.cancel() })
	context.AfterFunc(n.ctx, func() { close(done) })
	return done
}

// Stop ends all roles and waits for them.
func (n *Node) Stop() error {
	n.cancel()
	err := n.group.Wait()
	for _, c := range slices.Backward(n.closers) {
		c()
	}
	n.closers = nil
	return err
}
