package cli

import "github.com/spf13/cobra"

// commands lists the subcommands in the order in which a user meets them.
func commands(a *app) []*cobra.Command {
	return []*cobra.Command{
		a.devCommand(),
		a.demoCommand(),
		a.runCommand(),
		a.feedCommand(),
		a.topologyCommand(),
		a.topicsCommand(),
		a.waitCommand(),
		a.batchCommand(),
		a.jobCommand(),
		a.statsCommand(),
		a.workerCommand(),
		a.sizeCommand(),
		a.replayCommand(),
		a.conformanceCommand(),
		a.benchCommand(),
	}
}
