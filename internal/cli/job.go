package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/client"
)

func (a *app) jobCommand() *cobra.Command {
	subs := []*cobra.Command{a.jobTypes(), a.jobStart(), a.jobList(), a.jobShow(), a.jobWait(), a.jobTasks(), a.jobOutcomes()}
	return group(&cobra.Command{
		Use:   "job",
		Short: "Start, list, follow and command jobs through a sidecar",
		Example: `  quiesce job start november --type invoices --input '{"month": 11}'
  quiesce job show november`,
	}, append(subs, a.jobVerbs()...)...)
}

// jobTarget is one job of a sidecar.
type jobTarget struct {
	remote
	customer string
}

func (t *jobTarget) flags(cmd *cobra.Command) {
	t.remote.flags(cmd)
	cmd.Flags().StringVar(&t.customer, "customer", "", "whose job it is; needed where jobs are kept by customer")
}

// job checks the name of a job and makes a client for it.
func (t *jobTarget) job(cmd *cobra.Command, id string) (*client.Client, client.JobID, error) {
	j := client.JobID{Job: id, Customer: t.customer}
	if err := codecs.ValidID("job", id); err != nil {
		return nil, j, usage(cmd, "%w", err)
	}
	if t.customer != "" {
		if err := codecs.ValidID("customer", t.customer); err != nil {
			return nil, j, usage(cmd, "%w", err)
		}
	}
	c, err := t.client(cmd)
	return c, j, err
}

// jobReader makes a command that reads something about one job.
func (a *app) jobReader(cmd *cobra.Command, read func(ctx context.Context, c *client.Client, id client.JobID) error) *cobra.Command {
	var t jobTarget
	cmd.Args = args(cobra.ExactArgs(1))
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		c, id, err := t.job(cmd, ids[0])
		if err != nil {
			return err
		}
		return patient(cmd.Context(), func() error { return read(cmd.Context(), c, id) })
	}
	t.flags(cmd)
	a.jsonFlag(cmd)
	return cmd
}
