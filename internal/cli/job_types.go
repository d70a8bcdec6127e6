package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/topology"
)

func (a *app) jobTypes() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "types FILE...",
		Short: "Check job type files and draw their steps",
		Long: `Check job type files, all faults at once with their lines, and draw their steps. Give the same files to quiesce dev or
quiesce run (--jobs), and jobs can be started by the type's name.`,
		Example: `  quiesce job types invoices.yaml
  quiesce job types --format mermaid invoices.yaml`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			draw := map[string]func(*topology.JobType) string{
				"text": (*topology.JobType).Text, "mermaid": (*topology.JobType).Mermaid, "dot": (*topology.JobType).DOT,
			}
			if draw[format] == nil {
				return usage(cmd, "--format %q: text, mermaid or dot", format)
			}
			var types []*topology.JobType
			for _, f := range files {
				t, err := loadJobType(cmd, f)
				if err != nil {
					return err
				}
				if slices.ContainsFunc(types, func(had *topology.JobType) bool { return had.Name == t.Name && had.Version == t.Version }) {
					return usage(cmd, "%s: there are two of %s@%d", f, t.Name, t.Version)
				}
				types = append(types, t)
			}
			for i, t := range types {
				if i > 0 {
					a.printf("\n")
				}
				a.printf("%s", draw[format](t))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text, mermaid or dot")
	return cmd
}
