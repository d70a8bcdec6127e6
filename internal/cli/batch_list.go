package cli

import (
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/internal/sidecar/api"
)

func (a *app) batchList() *cobra.Command {
	var r remote
	var states, labels []string
	var topology string
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List batches, by id",
		Example: "  quiesce batch list --state open,sealed --label customer=acme --json",
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := r.validate(cmd); err != nil {
				return err
			}
			if limit < 0 {
				return usage(cmd, "--limit %d is negative", limit)
			}
			q := url.Values{}
			for _, s := range states {
				q.Add("state", s)
			}
			for _, l := range labels {
				k, v, ok := strings.Cut(l, "=")
				if !ok || k == "" {
					return usage(cmd, "--label %q: want name=value", l)
				}
				q.Add("label", k+":"+v)
			}
			if topology != "" {
				q.Set("topology", topology)
			}
			return a.listBatches(cmd, &r, q, limit)
		},
	}
	r.flags(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&states, "state", nil, "only these: active, ended, open, sealed, completed, completed_with_failures, failed, cancelled, expired, inconsistent, orphan, collected")
	f.StringSliceVar(&labels, "label", nil, "only those with this label, name=value (repeatable)")
	f.StringVar(&topology, "topology", "", "only those of this topology, name or name@version")
	f.IntVar(&limit, "limit", 0, "at most this many (default: all)")
	a.jsonFlag(cmd)
	return cmd
}

// listBatches walks the pages.
func (a *app) listBatches(cmd *cobra.Command, r *remote, q url.Values, limit int) error {
	rows := [][]string{{"BATCH", "RUN", "STATE", "MODE", "DONE", "TOTAL", "FAILURES", "STARTED"}}
	for n := 0; ; {
		var page api.BatchList
		if err := r.get(cmd.Context(), "/v1/batches", q, &page); err != nil {
			return err
		}
		for i := range page.Batches {
			if limit > 0 && n == limit {
				page.Next = ""
				break
			}
			n++
			if a.json {
				if err := a.printJSON(page.Batches[i]); err != nil {
					return err
				}
				continue
			}
			rows = append(rows, batchLine(&page.Batches[i]))
		}
		if page.Next == "" {
			break
		}
		q.Set("cursor", page.Next)
	}
	if a.json {
		return nil
	}
	return table(a.out, rows)
}
