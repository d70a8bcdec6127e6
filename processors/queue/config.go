package queue

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/topology"
)

// Config of a Kafka queue.
type Config struct {
	Bootstrap     []string        // host:port
	Prefix        string          // of the deployment; default quiesce
	Queue         string          // name; its topics exist
	Retries       []time.Duration // delays of the retry tiers; default those of topology.Queue
	InstanceID    string          // stable id for static membership; default none
	MaxDeliveries int             // deliveries without an end before a task is buried; default 5
	IsolateAfter  int             // deliveries without an end before a task is handed out alone; default 2
	Backlog       int             // tasks fetched ahead; default 2,000
	CommitEvery   time.Duration   // the longest that a done task stays uncommitted; default 100 ms
	Grace         time.Duration   // how long a revoked partition waits for its interrupted tasks; default 1 s
	Logger        *slog.Logger    // default slog.Default()
	Options       []kgo.Opt       // security and the like
}

// WithDefaults returns the configuration with absent fields filled in.
func (c Config) WithDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = codecs.DefaultPrefix
	}
	if c.Retries == nil {
		c.Retries = topology.Queue{Name: c.Queue}.WithDefaults().Retries
	}
	c.Retries = slices.Clone(c.Retries)
	slices.Sort(c.Retries)
	if c.MaxDeliveries == 0 {
		c.MaxDeliveries = DefaultMaxDeliveries
	}
	if c.IsolateAfter == 0 {
		c.IsolateAfter = 2
	}
	if c.Backlog == 0 {
		c.Backlog = 2000
	}
	if c.CommitEvery == 0 {
		c.CommitEvery = 100 * time.Millisecond
	}
	if c.Grace == 0 {
		c.Grace = time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Validate reports what is wrong.
func (c Config) Validate() error {
	if len(c.Bootstrap) == 0 {
		return errors.New("queue: no bootstrap servers")
	}
	if err := (topology.Queue{Name: c.Queue, Partitions: 1, Retries: c.Retries}).Validate(); err != nil {
		return err
	}
	if c.MaxDeliveries < 1 || c.IsolateAfter < 1 || c.IsolateAfter > c.MaxDeliveries {
		return fmt.Errorf("queue %s: isolate after %d deliveries, bury after %d: 1 <= isolate <= bury", c.Queue, c.IsolateAfter, c.MaxDeliveries)
	}
	return nil
}

func (c Config) topic() string { return topology.WorkTopic(c.Prefix, c.Queue) }
func (c Config) group() string { return topology.WorkTopic(c.Prefix, c.Queue) }
