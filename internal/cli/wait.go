package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/client"
)

const (
	appears = 5 * time.Second        // how long a batch may take to be known
	redraw  = 200 * time.Millisecond // between two looks when somebody watches a bar
)

func (a *app) waitCommand() *cobra.Command {
	var r remote
	var timeout time.Duration
	var attempted bool
	cmd := &cobra.Command{
		Use:   "wait ID",
		Short: "Wait until a batch has ended; the exit code says how",
		Long: `Wait until a batch has ended. Exit codes: 0 completed, 3 completed with failures, 4 failed, 5 cancelled, 6 expired,
7 inconsistent, 124 not ended within --timeout.`,
		Example: "  quiesce wait nightly-2026-11-30 --timeout 2h && start-the-next-thing",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, ids []string) error {
			c, err := r.batch(cmd, ids[0])
			if err != nil {
				return err
			}
			if timeout < 0 {
				return usage(cmd, "--timeout %s is negative", timeout)
			}
			return a.wait(cmd.Context(), c, ids[0], timeout, attempted)
		},
	}
	r.flags(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after this long, with exit code 124 (default: never)")
	cmd.Flags().BoolVar(&attempted, "attempted", false, "modes markers and observe: exit 0 although outcomes are unknown")
	a.jsonFlag(cmd)
	return cmd
}

// wait follows a batch to its end, prints it, and returns its exit code as an error.
func (a *app) wait(ctx context.Context, c *client.Client, id string, timeout time.Duration, attempted bool) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	bars := newBars(a.err)
	line := bars.add(id, 0)
	var b *api.Batch
	give := time.Now().Add(appears)
	err := patient(ctx, func() (err error) {
		for {
			b, err = follow(ctx, c, id, bars, line)
			if !errors.Is(err, client.ErrNotFound) || time.Now().After(give) {
				return err
			}
			if err := pause(ctx, 50*time.Millisecond); err != nil {
				return err
			}
		}
	})
	bars.finish(line)
	if errors.Is(err, context.DeadlineExceeded) {
		return &exitError{code: client.ExitTimeout, err: fmt.Errorf("batch %s has not ended within %s", id, timeout)}
	}
	if err != nil {
		return err
	}
	return a.endOf(b, attempted)
}

// follow waits for the end: in long polls, or, where somebody watches, in short looks.
func follow(ctx context.Context, c *client.Client, id string, bars *bars, line *bar) (*api.Batch, error) {
	if !bars.visible() {
		return c.Wait(ctx, id, nil)
	}
	for {
		b, err := c.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		line.set(int64(b.Counts.Ended()), int64(b.Counts.Total))
		if b.Terminal {
			return b, nil
		}
		if err := pause(ctx, redraw); err != nil {
			return nil, err
		}
	}
}

// endOf prints how a batch ended and returns its exit code as an error.
func (a *app) endOf(b *api.Batch, attempted bool) error {
	if a.json {
		if err := a.printJSON(b); err != nil {
			return err
		}
	} else {
		a.printf("%s %s: %d tasks: %s\n", b.Batch, stateText(b), b.Counts.Total, countsText(b.Counts))
	}
	code := client.ExitOf(b, attempted)
	if code == ExitOK {
		return nil
	}
	e := &exitError{code: code}
	if b.State == "completed" {
		e.err = fmt.Errorf("mode %s proves that all tasks were attempted, not that they succeeded: accept that with --attempted", b.Mode)
	}
	return e
}
