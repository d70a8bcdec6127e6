package node

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/quiesce/quiesce/processors/worker"
)

// startWorker works off a queue. What the node knows is filled in: brokers, prefix, retries. A worker that fails starts
// again; only one whose handlers hang ends the node, since nothing but the end of the process frees their slots.
func (n *Node) startWorker(ctx context.Context, cfg worker.Config) {
	cfg.Bootstrap, cfg.Prefix = strings.Join(n.cfg.Bootstrap, ","), n.cfg.Prefix
	cfg.Options = append(cfg.Options, n.cfg.member()...)
	if cfg.Retries == nil {
		cfg.Retries = n.cfg.Jobs.queue(cfg.Queue).Retries
	}
	if cfg.Log == nil {
		cfg.Log = n.cfg.Log
	}
	if cfg.Counters == nil {
		cfg.Counters = &worker.Counters{}
	}
	n.registry.MustRegister(workerMetrics(cfg))
	n.run("worker of queue "+cfg.Queue, func() error {
		return n.again(ctx, "worker failed, started again", func() error { return worker.Run(ctx, cfg) },
			func(err error) bool { return errors.Is(err, worker.ErrStuck) })
	})
}

// again runs fn until it returns nil, ctx ends, or it fails in a way that is final.
func (n *Node) again(ctx context.Context, what string, fn func() error, final func(error) bool) error {
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := fn()
		if err != nil && final(err) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, wait time.Duration) {
		n.cfg.Log.Error(what, "error", err, "seconds", wait.Seconds())
	}))
	return err
}
