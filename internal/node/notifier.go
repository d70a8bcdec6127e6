package node

import (
	"context"
	"errors"

	deliver "github.com/quiesce/quiesce/internal/notify"
	"github.com/quiesce/quiesce/processors/notify"
	"github.com/quiesce/quiesce/processors/worker"
	"github.com/quiesce/quiesce/topology"
)

// Notify is who wants to know what, and how deliveries are made.
type Notify struct {
	// Subscriptions are matched to every event; batches and jobs may bring up to four of their own. Default: none.
	Subscriptions []notify.Subscription
	// Delivery says what a deliverer may do: secrets, SMTP, templates, commands.
	Delivery deliver.Config
	// Concurrency is how many deliveries are made at once by this node: a slow endpoint takes one for as long as the
	// time-out of an attempt. Default 64.
	Concurrency int
}

// machine makes the notifier's machine.
func (c Notify) machine() (*notify.Machine, error) {
	return notify.New(notify.Config{Subscriptions: c.Subscriptions, Queue: topology.NotifyQueue,
		AttemptTimeout: c.Delivery.WithDefaults().Timeout.Milliseconds()})
}

func (c Notify) validate() error {
	_, err := c.machine()
	return errors.Join(err, c.Delivery.Validate())
}

// startNotifier runs the group that matches, and the workers that deliver.
func (n *Node) startNotifier(ctx context.Context) error {
	d, err := deliver.New(n.cfg.Notify.Delivery)
	if err != nil {
		return err
	}
	n.closers = append(n.closers, d.Close)
	if err := n.startMachine(ctx, RoleNotifier); err != nil {
		return err
	}
	width := n.cfg.Notify.Concurrency
	if width == 0 {
		width = 64
	}
	n.startWorker(ctx, worker.Config{Queue: topology.NotifyQueue, Concurrency: width, Handler: delivering(d)})
	return nil
}

// delivering makes a handler of a deliverer: what no other attempt can mend fails at once.
func delivering(d *deliver.Deliverer) worker.Handler {
	return func(ctx context.Context, t *worker.Task) (worker.Result, error) {
		err := d.Deliver(ctx, t)
		if err != nil && !deliver.Retryable(err) {
			err = worker.Fail(err)
		}
		return worker.Result{}, err
	}
}
