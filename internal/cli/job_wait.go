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

func (a *app) jobWait() *cobra.Command {
	var t jobTarget
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait ID",
		Short: "Wait until a job has ended; the exit code says how",
		Long: `Wait until a job has ended. Exit codes: 0 completed, 3 completed with failures, 4 failed, 5 cancelled, 6 expired,
124 not ended within --timeout.`,
		Example: "  quiesce job wait november --timeout 2h && start-the-next-thing",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, ids []string) error {
			c, id, err := t.job(cmd, ids[0])
			if err != nil {
				return err
			}
			if timeout < 0 {
				return usage(cmd, "--timeout %s is negative", timeout)
			}
			return a.waitJob(cmd.Context(), c, id, timeout)
		},
	}
	t.flags(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after this long, with exit code 124 (default: never)")
	a.jsonFlag(cmd)
	return cmd
}

// waitJob follows a job to its end, prints it, and returns its exit code as an error.
func (a *app) waitJob(ctx context.Context, c *client.Client, id client.JobID, timeout time.Duration) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	b := newBars(a.err)
	steps := stepBars{bars: b, lines: map[string]*bar{}}
	var j *api.Job
	give := time.Now().Add(appears)
	err := patient(ctx, func() (err error) {
		for {
			j, err = followJob(ctx, c, id, &steps)
			if !errors.Is(err, client.ErrNotFound) || time.Now().After(give) {
				return err
			}
			if err := pause(ctx, 50*time.Millisecond); err != nil {
				return err
			}
		}
	})
	steps.finish()
	if errors.Is(err, context.DeadlineExceeded) {
		return &exitError{code: client.ExitTimeout, err: fmt.Errorf("job %s has not ended within %s", id, timeout)}
	}
	if err != nil {
		return err
	}
	return a.endOfJob(j)
}

// followJob waits for the end: in long polls, or, where somebody watches, in short looks.
func followJob(ctx context.Context, c *client.Client, id client.JobID, s *stepBars) (*api.Job, error) {
	if !s.bars.visible() {
		return c.WaitJob(ctx, id, nil)
	}
	for {
		j, err := c.Job(ctx, id)
		if err != nil {
			return nil, err
		}
		s.show(j)
		if j.Terminal {
			return j, nil
		}
		if err := pause(ctx, redraw); err != nil {
			return nil, err
		}
	}
}

// endOfJob prints how a job ended and returns its exit code as an error.
func (a *app) endOfJob(j *api.Job) error {
	if a.json {
		if err := a.printJSON(j); err != nil {
			return err
		}
	} else if err := jobText(a.out, j); err != nil {
		return err
	}
	if code := client.ExitOfJob(j); code != ExitOK {
		return &exitError{code: code}
	}
	return nil
}

// stepBars are one line for each step that has begun.
type stepBars struct {
	bars  *bars
	lines map[string]*bar
	all   []*bar
}

func (s *stepBars) show(j *api.Job) {
	for _, st := range j.Steps {
		if st.StartedAt == 0 {
			continue
		}
		done, total := int64(0), int64(1)
		if st.Counts != nil {
			done, total = int64(st.Counts.Ended()), int64(st.Counts.Total)
		} else if st.EndedAt != 0 {
			done = 1
		}
		if s.lines[st.Step] == nil {
			s.lines[st.Step] = s.bars.add(st.Step, total)
			s.all = append(s.all, s.lines[st.Step])
		}
		s.lines[st.Step].set(done, total)
	}
}

func (s *stepBars) finish() { s.bars.finish(s.all...) }
