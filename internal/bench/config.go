package bench

import (
	"errors"
	"fmt"
	"log/slog"
)

// Orders in which task indexes arrive.
const (
	Sequential = "sequential" // near-sequential: shuffled within windows of 10,000
	Random     = "random"
)

// Config says what to measure.
type Config struct {
	// N is the number of tasks in all batches together. Default: 1,000,000 (latency: batches x 10).
	N int
	// K is the number of task ids in one completion record. Default 1 (hot: 100).
	K int
	// Batches is the number of batches. Default: 1,000 (latency: 500; hot: 1).
	Batches int
	// Active is how many batches are open at once. Default: all.
	Active int
	// Order of the task indexes: Sequential or Random. Default Random (hot: Sequential).
	Order string
	// Partitions of the control topic. Default 4.
	Partitions int32
	// Broker is the address of a Kafka cluster; "" = the embedded broker.
	Broker string
	// Only limits the run to Quiesce: no comparison.
	Only bool
	// Kill lets fanout kill a worker process in the middle of one more job.
	Kill bool
	// Seed of the shuffling. Default 1.
	Seed uint64
	// Program is what scenarios that need a controller in a process of its own start. Default: this program.
	Program string
	// Command is printed in the result.
	Command string
	// Log gets what goes wrong. Default: discarded.
	Log *slog.Logger
}

// WithDefaults fills in the documented defaults of a scenario.
func (c Config) WithDefaults(scenario string) Config {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	switch scenario {
	case "hot":
		c.Batches = 1
		def(&c.N, 10_000_000)
		def(&c.K, 100)
		if c.Order == "" {
			c.Order = Sequential
		}
	case "latency":
		def(&c.Batches, 500)
		def(&c.N, c.Batches*10)
		def(&c.K, 1)
	case Recovery, Memory:
		def(&c.N, 1_000_000)
		def(&c.Active, 100_000)
		c.Batches = c.N
		def(&c.K, 1)
	case Beside:
		def(&c.Batches, 200)
		def(&c.N, 10_000_000)
		def(&c.K, 100)
		if c.Order == "" {
			c.Order = Sequential
		}
	case Fanout:
		def(&c.N, 100_000)
		def(&c.Batches, 10)
		def(&c.K, 1)
		def(&c.Active, 1)
	default:
		def(&c.Batches, 1000)
		def(&c.N, 1_000_000)
		def(&c.K, 1)
	}
	def(&c.Active, c.Batches)
	if c.Order == "" {
		c.Order = Random
	}
	if c.Partitions == 0 {
		c.Partitions = 4
	}
	if c.Seed == 0 {
		c.Seed = 1
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate reports every setting that cannot work.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, v ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, v...))
		}
	}
	check(c.N > 0, "n %d: at least one task", c.N)
	check(c.K > 0, "k %d: at least one id a record", c.K)
	check(c.Batches > 0 && c.Batches <= c.N, "batches %d: between 1 and n = %d", c.Batches, c.N)
	check(c.Active > 0 && c.Active <= c.Batches, "active %d: between 1 and batches = %d", c.Active, c.Batches)
	check(c.Order == Sequential || c.Order == Random, "order %q: sequential or random", c.Order)
	check(c.Partitions > 0, "partitions %d: at least one", c.Partitions)
	check(c.N/max(c.Batches, 1) <= 1<<31, "n %d: too many tasks a batch", c.N)
	return errors.Join(errs...)
}

// ValidateFor reports in addition what cannot work in one scenario.
func (c Config) ValidateFor(scenario string) error {
	err := c.Validate()
	if scenario == Beside && c.Partitions < 2 {
		err = errors.Join(err, errors.New("partitions: beside needs at least two"))
	}
	return err
}

// Line is the command that measures this: settings at their defaults are left out.
func (c Config) Line(scenario string) string {
	line := "quiesce bench " + scenario
	add := func(flag string, v, none any) {
		if v != none {
			line += fmt.Sprintf(" --%s %v", flag, v)
		}
	}
	add("n", c.N, 0)
	add("k", c.K, 0)
	add("batches", c.Batches, 0)
	add("active", c.Active, 0)
	add("order", c.Order, "")
	if c.Partitions != 4 {
		add("partitions", c.Partitions, int32(0))
	}
	add("broker", c.Broker, "")
	if c.Only {
		line += " --only"
	}
	if c.Kill {
		line += " --kill"
	}
	if c.Seed != 1 {
		add("seed", c.Seed, uint64(0))
	}
	return line
}
