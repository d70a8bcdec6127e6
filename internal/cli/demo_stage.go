package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/internal/demo"
)

func (a *app) demoTopology() *cobra.Command {
	return &cobra.Command{
		Use:     "topology",
		Short:   "Print the demo's topology file",
		Example: "  quiesce demo topology > go-index.yaml",
		Args:    args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			a.printf("%s", demo.TopologyFile)
			return nil
		},
	}
}

func (a *app) demoTasks() *cobra.Command {
	var input string
	cmd := &cobra.Command{
		Use:     "tasks",
		Short:   "Print the demo's tasks as JSON lines, for quiesce feed",
		Example: "  quiesce demo tasks --input . > tasks.jsonl",
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := demoInput(cmd, input)
			if err != nil {
				return err
			}
			paths, skipped, err := demo.Files(dir)
			if err != nil {
				return err
			}
			for _, s := range skipped {
				a.notef("folder not listed: %s: %s\n", s.Path, s.Reason)
			}
			for _, p := range paths {
				if err := a.printJSON(demo.File{Path: p}); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&input, "input", "", "folder whose .go files are the tasks (default: the source of the local Go toolchain)")
	return cmd
}

func (a *app) demoStage() *cobra.Command {
	var c connection
	var cfg demo.ServiceConfig
	cmd := &cobra.Command{
		Use:     "stage NAME",
		Short:   "Run one service of the demo as a process of its own: read, parse, digest or report",
		Example: "  quiesce demo stage parse --bootstrap-server kafka-1:9092 --instance-id parse-1",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := c.validate(cmd); err != nil {
				return err
			}
			dir, err := demoInput(cmd, cfg.Input)
			if err != nil {
				return err
			}
			cfg.Stage, cfg.Input, cfg.Bootstrap, cfg.Prefix, cfg.Options, cfg.Log = names[0], dir, c.bootstrap, c.prefix, c.auth(), a.log
			if err := cfg.Validate(); err != nil {
				return usage(cmd, "%w", err)
			}
			a.printf("running: stage %s\n", cfg.Stage)
			return demo.Service(cmd.Context(), cfg)
		},
	}
	c.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&cfg.Input, "input", "", "folder that the paths are relative to (default: the source of the local Go toolchain)")
	f.StringVar(&cfg.InstanceID, "instance-id", "", "a name that is stable over restarts and unique: a restart then moves no partitions")
	return cmd
}

// demoInput is the folder to work on.
func demoInput(cmd *cobra.Command, input string) (string, error) {
	if input == "" {
		return demo.GoSource()
	}
	if st, err := os.Stat(input); err != nil || !st.IsDir() {
		return "", usage(cmd, "--input %s: not a folder that can be read", input)
	}
	return input, nil
}
