package cli

import (
	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/internal/bench"
)

func (a *app) benchCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "bench",
		Short: "Measure latency and throughput, side by side with what they are to be compared with",
		Example: `  quiesce bench latency
  quiesce bench ingest --n 1000000 --k 1 --json`,
	},
		a.scenario(bench.Latency, "Last completion produced to completion event consumed", "quiesce bench latency --batches 500"),
		a.scenario(bench.Ingest, "Many batches, k completions a record, exact", "quiesce bench ingest --n 2000000 --batches 2000 --k 1"),
		a.benchAll(),
		a.scenario(bench.Recovery, "Take over a table of n collected and active open batches", "quiesce bench recovery --n 1000000 --active 100000"),
		a.scenario(bench.Memory, "Resident memory of a controller with active open and n collected batches", "quiesce bench memory --active 100000"),
		a.scenario(bench.Beside, "Small batches beside a hot one, half of them on its partition", "quiesce bench beside --n 10000000 --batches 200"),
		a.scenario(bench.Fanout, "Jobs of many sub-jobs that do nothing, one job after the other", "quiesce bench fanout --n 100000 --batches 10"),
		a.scenario(bench.Hot, "One batch of many tasks", "quiesce bench hot --n 10000000 --k 100 --order random --json"))
}

func (a *app) scenario(name, short, example string) *cobra.Command {
	var cfg bench.Config
	var broker string
	cmd := &cobra.Command{
		Use:     name,
		Short:   short,
		Example: "  " + example,
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if broker != "embedded" {
				cfg.Broker = broker
			}
			cfg.Command = cfg.Line(name)
			cfg.Log = a.log
			if err := cfg.WithDefaults(name).ValidateFor(name); err != nil {
				return usage(cmd, "%w", err)
			}
			a.notef("%s\n", cfg.Command)
			r, err := bench.Run(cmd.Context(), name, cfg)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(r)
			}
			return bench.Table(a.out, []bench.Result{r})
		},
	}
	f := cmd.Flags()
	f.IntVar(&cfg.N, "n", 0, "tasks in all batches together")
	f.IntVar(&cfg.K, "k", 0, "task ids in one completion record")
	f.IntVar(&cfg.Batches, "batches", 0, "number of batches")
	f.IntVar(&cfg.Active, "active", 0, "batches open at once (default: all)")
	f.StringVar(&cfg.Order, "order", "", "order of the ids: sequential or random")
	f.Int32Var(&cfg.Partitions, "partitions", 4, "partitions of the control topic")
	f.StringVar(&broker, "broker", "embedded", "embedded, or the address of a Kafka cluster")
	f.BoolVar(&cfg.Only, "only", false, "no comparison: Quiesce alone")
	if name == bench.Fanout {
		f.BoolVar(&cfg.Kill, "kill", false, "kill a worker process in the middle of one more job")
	}
	f.Uint64Var(&cfg.Seed, "seed", 1, "of the shuffling")
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) benchAll() *cobra.Command {
	var broker string
	cmd := &cobra.Command{
		Use:     "all",
		Short:   "The standard cases one after the other, as a table",
		Example: "  quiesce bench all --json | tee bench.jsonl",
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cases := bench.All()
			for i := range cases {
				c := &cases[i].Config
				if broker != "embedded" {
					c.Broker = broker
				}
				c.Log, c.Command = a.log, c.Line(cases[i].Scenario)
			}
			var results []bench.Result
			err := bench.RunAll(cmd.Context(), cases, func(r bench.Result) error {
				a.notef("%s\n", r.Command)
				results = append(results, r)
				if a.json {
					return a.printJSON(r)
				}
				return nil
			})
			if err != nil || a.json {
				return err
			}
			return bench.Table(a.out, results)
		},
	}
	cmd.Flags().StringVar(&broker, "broker", "embedded", "embedded, or the address of a Kafka cluster")
	a.jsonFlag(cmd)
	return cmd
}
