package cli

import (
	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/codecs"
)

func (a *app) batchCommand() *cobra.Command {
	subs := []*cobra.Command{a.batchList(), a.batchShow(), a.batchExplain(), a.batchMissing(), a.batchTasks()}
	return group(&cobra.Command{
		Use:   "batch",
		Short: "List, explain and command batches through a sidecar",
		Example: `  quiesce batch list --state active
  quiesce batch explain nightly-2026-11-30`,
	}, append(subs, a.batchVerbs()...)...)
}

// batchID checks the argument that names a batch.
func batchID(cmd *cobra.Command, r *remote, id string) error {
	if err := codecs.ValidID("batch", id); err != nil {
		return usage(cmd, "%w", err)
	}
	return r.validate(cmd)
}
