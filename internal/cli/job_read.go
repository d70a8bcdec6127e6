package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/client"
)

func (a *app) jobShow() *cobra.Command {
	return a.jobReader(&cobra.Command{
		Use:     "show ID",
		Short:   "Show a job: state, steps, counts of the fan-out steps",
		Example: "  quiesce job show november",
	}, func(ctx context.Context, c *client.Client, id client.JobID) error {
		j, err := c.Job(ctx, id)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(j)
		}
		return jobText(a.out, j)
	})
}

func (a *app) jobTasks() *cobra.Command {
	var step string
	var outcomes []string
	cmd := a.jobReader(&cobra.Command{
		Use:     "tasks ID",
		Short:   "List the tasks of a job's fan-out steps with their outcomes and reasons",
		Example: "  quiesce job tasks november --step s2 --outcome failed,lost",
	}, func(ctx context.Context, c *client.Client, id client.JobID) error {
		for t, err := range c.JobTasks(ctx, id, step, outcomes...) {
			if err != nil {
				return err
			}
			if err := a.printJobTask(t); err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Flags().StringVar(&step, "step", "", "only those of this step")
	cmd.Flags().StringSliceVar(&outcomes, "outcome", nil, outcomesHelp)
	return cmd
}

const outcomesHelp = "only these: pending, running, ok, failed, skipped, cancelled, timed_out, lost, unknown"

func (a *app) printJobTask(t *api.JobTask) error {
	if a.json {
		return a.printJSON(t)
	}
	a.printf("%s\t", t.Step)
	return a.printTask(&t.Task)
}

func (a *app) jobList() *cobra.Command {
	var r remote
	var f client.JobFilter
	var labels []string
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List jobs, by customer and id",
		Example: "  quiesce job list --state active --type invoices",
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := r.client(cmd)
			if err != nil {
				return err
			}
			if limit < 0 {
				return usage(cmd, "--limit %d is negative", limit)
			}
			if f.Labels, err = labelFilter(cmd, labels); err != nil {
				return err
			}
			return a.listJobs(cmd, c, f, limit)
		},
	}
	r.flags(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&f.States, "state", nil, "only these: active, ended, waiting, running, completed, completed_with_failures, failed, cancelled, expired, collected")
	flags.StringSliceVar(&labels, "label", nil, "only those with this label, name=value (repeatable)")
	flags.StringVar(&f.Type, "type", "", "only those of this job type, name or name@version")
	flags.StringVar(&f.Customer, "customer", "", "only those of this customer")
	flags.IntVar(&limit, "limit", 0, "at most this many (default: all)")
	a.jsonFlag(cmd)
	return cmd
}

// listJobs walks the pages; JSON goes out as it comes in.
func (a *app) listJobs(cmd *cobra.Command, c *client.Client, f client.JobFilter, limit int) error {
	ctx := cmd.Context()
	if err := patient(ctx, func() error { return c.Ready(ctx) }); err != nil {
		return err
	}
	rows := [][]string{{"JOB", "CUSTOMER", "TYPE", "STATE", "STEPS", "REQUESTED", "ENDED"}}
	n := 0
	for j, err := range c.Jobs(ctx, f) {
		if err != nil {
			return err
		}
		if a.json {
			if err := a.printJSON(j); err != nil {
				return err
			}
		} else {
			rows = append(rows, []string{j.Job, orDash(j.Customer), fmt.Sprintf("%s@%d", j.Type, j.TypeVersion), jobStateText(j),
				endedSteps(j), when(j.RequestedAt), when(j.EndedAt)})
		}
		if n++; n == limit {
			break
		}
	}
	if a.json {
		return nil
	}
	return table(a.out, rows)
}
