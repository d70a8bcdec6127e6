package cli

import "github.com/spf13/cobra"

func (a *app) batchCommand() *cobra.Command {
	subs := []*cobra.Command{a.batchList(), a.batchShow(), a.batchExplain(), a.batchMissing(), a.batchTasks()}
	return group(&cobra.Command{
		Use:   "batch",
		Short: "List, explain and command batches through a sidecar",
		Example: `  quiesce batch list --state active
  quiesce batch explain nightly-2026-11-30`,
	}, append(subs, a.batchVerbs()...)...)
}
