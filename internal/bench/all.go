package bench

import "context"

// Case is a scenario with its settings.
type Case struct {
	Scenario string
	Config   Config
}

// All returns the standard cases, those that docs/performance.md keeps.
func All() []Case {
	return []Case{
		{Latency, Config{Batches: 500}},
		{Ingest, Config{N: 1_000_000, Batches: 1000, K: 1}},
		{Ingest, Config{N: 30_000_000, Batches: 10_000, K: 100}},
		{Ingest, Config{N: 2_000_000, Batches: 200_000, Active: 20_000, K: 1}},
		{Hot, Config{N: 10_000_000, K: 100, Order: Sequential}},
		{Hot, Config{N: 10_000_000, K: 100, Order: Random}},
		{Beside, Config{}},
		{Recovery, Config{}},
		{Memory, Config{}},
		{Fanout, Config{N: 20_000, Batches: 20}},
		{Fanout, Config{N: 100_000, Batches: 10}},
		{Fanout, Config{N: 300_000, Batches: 3}},
		{Fanout, Config{N: 1_000_000, Batches: 1}},
	}
}

// RunAll measures the cases one after the other and hands each result on as it comes.
func RunAll(ctx context.Context, cases []Case, each func(Result) error) error {
	for _, c := range cases {
		r, err := Run(ctx, c.Scenario, c.Config)
		if err != nil {
			return err
		}
		if err := each(r); err != nil {
			return err
		}
	}
	return nil
}
