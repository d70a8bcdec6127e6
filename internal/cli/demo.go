package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/demo"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/client"
)

func (a *app) demoCommand() *cobra.Command {
	var cfg demo.Config
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Index every .go file of the local Go toolchain through a DAG of services over Kafka",
		Long: `Index every .go file of a folder (default: the source of the local Go toolchain) through a DAG of services over an
embedded broker: read, then parse and digest side by side, then report. One task is one file. Says when the batch is
complete, and checks itself against a plain loop over the same folder.

Exits like wait: 3 when files failed (the toolchain ships files that do not parse on purpose), 1 when the check fails.`,
		Example: `  quiesce demo
  quiesce demo --input . --mode ledger --json
  quiesce demo --keep --listen 127.0.0.1:7878      # leaves the dashboard up`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cfg.Validate(); cfg.Mode != "" && err != nil {
				return usage(cmd, "--mode: %w", err)
			}
			dir, err := demoInput(cmd, cfg.Input)
			if err != nil {
				return err
			}
			cfg.Input = dir
			if cfg.Batch != "" {
				if err := codecs.ValidID("batch", cfg.Batch); err != nil {
					return usage(cmd, "--batch: %w", err)
				}
			}
			return a.demo(cmd, cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Input, "input", "", "folder whose .go files are the tasks (default: the source of the local Go toolchain)")
	f.StringVar(&cfg.Mode, "mode", "markers", "how completion is detected: markers or ledger")
	f.StringVar(&cfg.Batch, "batch", "go-index", "id of the batch")
	f.StringVar(&cfg.Listen, "listen", "127.0.0.1:0", "address of the sidecar")
	f.BoolVar(&cfg.Keep, "keep", false, "leave everything running after the result, until interrupted")
	a.jsonFlag(cmd)
	cmd.AddCommand(a.demoTopology(), a.demoTasks(), a.demoStage(), a.demoInvoices())
	return cmd
}

func (a *app) demo(cmd *cobra.Command, cfg demo.Config) error {
	bars := newBars(a.err)
	lines := map[string]*bar{}
	up := false
	cfg.Log = a.log
	cfg.Watch = func(p demo.Progress) {
		if !up {
			up = true
			a.notef("broker %s, %s\n", p.Broker, sidecarText(p.Sidecar))
			for _, name := range strings.Fields("read parse digest report") {
				lines[name] = bars.add(name, int64(p.Tasks))
			}
		}
		for name, n := range p.Stages {
			total := int64(p.Tasks)
			if name == demo.StageReport {
				total *= 2
			}
			lines[name].set(int64(n), total)
		}
	}
	var all []*bar
	cfg.Done = func(r *demo.Result) {
		for _, l := range lines {
			all = append(all, l)
		}
		bars.finish(all...)
		if a.json {
			_ = a.printJSON(r)
			return
		}
		r.Print(a.out)
		if cfg.Keep {
			a.printf("everything is left running: interrupt to end it\n")
		}
	}
	r, err := demo.Run(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	return demoExit(r)
}

func sidecarText(address string) string {
	if address == "" {
		return "no sidecar"
	}
	return "dashboard and HTTP at " + address
}

// demoExit is the exit code of the batch, unless the check found a difference.
func demoExit(r *demo.Result) error {
	return checked(client.ExitOf(&api.Batch{State: r.State}, true), r.Differences)
}

// checked makes an exit code an error, unless it is 0; a difference is 1 in any case.
func checked(code int, differences []string) error {
	if len(differences) > 0 {
		code = ExitError
	}
	if code == ExitOK {
		return nil
	}
	return &exitError{code: code}
}
