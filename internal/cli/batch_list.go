package cli

import (
	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/client"
)

func (a *app) batchList() *cobra.Command {
	var r remote
	var f client.Filter
	var labels []string
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List batches, by id",
		Example: "  quiesce batch list --state open,sealed --label customer=acme --json",
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
			return a.listBatches(cmd, c, f, limit)
		},
	}
	r.flags(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&f.States, "state", nil, "only these: active, ended, open, sealed, completed, completed_with_failures, failed, cancelled, expired, inconsistent, orphan, collected")
	flags.StringSliceVar(&labels, "label", nil, "only those with this label, name=value (repeatable)")
	flags.StringVar(&f.Topology, "topology", "", "only those of this topology, name or name@version")
	flags.IntVar(&limit, "limit", 0, "at most this many (default: all)")
	a.jsonFlag(cmd)
	return cmd
}

// listBatches walks the pages; JSON goes out as it comes in.
func (a *app) listBatches(cmd *cobra.Command, c *client.Client, f client.Filter, limit int) error {
	if err := patient(cmd.Context(), func() error { return c.Ready(cmd.Context()) }); err != nil {
		return err
	}
	rows := [][]string{{"BATCH", "RUN", "STATE", "MODE", "DONE", "TOTAL", "FAILURES", "STARTED"}}
	print := func(b *api.Batch) error {
		if a.json {
			return a.printJSON(b)
		}
		rows = append(rows, batchLine(b))
		return nil
	}
	n := 0
	for b, err := range c.List(cmd.Context(), f) {
		if err != nil {
			return err
		}
		if err := print(b); err != nil {
			return err
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
