package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

const (
	pollFor = 20 * time.Second // one long poll
	appears = 5 * time.Second  // how long a batch may take to be known
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
			if err := r.validate(cmd); err != nil {
				return err
			}
			if err := codecs.ValidID("batch", ids[0]); err != nil {
				return usage(cmd, "%w", err)
			}
			if timeout < 0 {
				return usage(cmd, "--timeout %s is negative", timeout)
			}
			return a.wait(cmd.Context(), &r, ids[0], timeout, attempted)
		},
	}
	r.flags(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after this long, with exit code 124 (default: never)")
	cmd.Flags().BoolVar(&attempted, "attempted", false, "modes markers and observe: exit 0 although outcomes are unknown")
	a.jsonFlag(cmd)
	return cmd
}

// wait follows a batch to its end, prints it, and returns its exit code as an error.
func (a *app) wait(ctx context.Context, r *remote, id string, timeout time.Duration, attempted bool) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	bars := newBars(a.err)
	line := bars.add(id, 0)
	every := pollFor
	if bars.visible() {
		every = 300 * time.Millisecond
	}
	b, err := r.ended(ctx, id, every, func(b *api.Batch) { line.set(int64(b.Counts.Ended()), int64(b.Counts.Total)) })
	bars.finish(line)
	if errors.Is(err, context.DeadlineExceeded) {
		return &exitError{code: ExitTimeout, err: fmt.Errorf("batch %s has not ended within %s", id, timeout)}
	}
	if err != nil {
		return err
	}
	return a.endOf(b, attempted)
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
	code := ExitCode(codecs.State_Code(codecs.State_Code_value[b.State]), b.Counts.Unknown, attempted)
	if code == ExitOK {
		return nil
	}
	e := &exitError{code: code}
	if b.State == "completed" {
		e.err = fmt.Errorf("mode %s proves that all tasks were attempted, not that they succeeded: accept that with --attempted", b.Mode)
	}
	return e
}

// ended follows a batch with long polls of a length until it has ended. A batch that is not known yet may take a moment to appear.
func (r *remote) ended(ctx context.Context, id string, every time.Duration, progress func(*api.Batch)) (*api.Batch, error) {
	give := time.Now().Add(appears)
	poll := url.Values{}
	for {
		var b api.Batch
		err := r.get(ctx, batchPath(id), poll, &b)
		switch {
		case isProblem(err, api.ProblemNotFound) && time.Now().Before(give):
			if err := pause(ctx, 50*time.Millisecond); err != nil {
				return nil, err
			}
			continue
		case err != nil:
			return nil, err
		case b.Terminal:
			progress(&b)
			return &b, nil
		}
		progress(&b)
		poll.Set("wait", every.String())
	}
}
