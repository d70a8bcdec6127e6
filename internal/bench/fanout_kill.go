package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"golang.org/x/sync/errgroup"

	"github.com/quiesce/quiesce/codecs"
)

// killed runs one more job with a second worker process, which is killed while it has tasks, and returns the time from
// the kill to the end of the job. Its sub-jobs are commands, a process each.
func (w *crowd) killed(ctx context.Context, p *probe) (time.Duration, error) {
	c, alive, err := p.f.start(ctx, "worker", "--queue", workQueue, "--exec", "true")
	if err != nil {
		return 0, err
	}
	defer c.kill()
	if err := p.f.members(alive, 2); err != nil {
		return 0, errors.Join(err, context.Cause(alive))
	}
	var at time.Time
	var o outcome
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := w.reaches(gctx, int64(w.size/4)); err != nil {
			return err
		}
		c.kill()
		at = time.Now()
		return nil
	})
	group.Go(func() (err error) {
		o, err = w.run(gctx, p, "killed", w.size)
		return err
	})
	if err := group.Wait(); err != nil {
		return 0, fmt.Errorf("with a killed worker: %w", err)
	}
	return o.ended.Sub(at), nil
}

// reaches waits until n sub-jobs are done.
func (w *crowd) reaches(ctx context.Context, n int64) error {
	for w.done.Load() < n {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// members waits until the group of the workers has n members that have agreed on their shares.
func (f *field) members(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	p, err := newProbe(f)
	if err != nil {
		return err
	}
	defer p.client.Close()
	group := codecs.Group(f.prefix, codecs.WorkTopic(workQueue))
	for {
		d, err := kadm.NewClient(p.client).DescribeGroups(ctx, group)
		if err == nil && d[group].State == "Stable" && len(d[group].Members) == n {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("group %s has not got %d members: %w", group, n, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
