package bench

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker"
	"github.com/quiesce/quiesce/internal/topics"
	"github.com/quiesce/quiesce/processors/batch"
	"github.com/quiesce/quiesce/topology"
)

// Scenarios by name.
const (
	Latency = "latency"
	Ingest  = "ingest"
	Hot     = "hot"

	Recovery = "recovery"
	Memory   = "memory"
	Beside   = "beside"
	Fanout   = "fanout"
)

// Run measures one scenario.
func Run(ctx context.Context, scenario string, cfg Config) (Result, error) {
	cfg = cfg.WithDefaults(scenario)
	if err := cfg.ValidateFor(scenario); err != nil {
		return Result{}, fmt.Errorf("bench %s: %w", scenario, err)
	}
	f, done, err := prepare(ctx, cfg)
	if err != nil {
		return Result{}, fmt.Errorf("bench %s: %w", scenario, err)
	}
	defer done()
	r := Result{Scenario: scenario, N: cfg.N, K: cfg.K, Batches: cfg.Batches, Active: cfg.Active, Order: cfg.Order,
		Partitions: cfg.Partitions, Broker: cfg.Broker, Command: cfg.Command}
	if r.Broker == "" {
		r.Broker = "embedded"
	}
	switch scenario {
	case Latency:
		err = latency(ctx, f, &r)
	case Recovery:
		err = recovery(ctx, f, &r)
	case Memory:
		err = memoryUse(ctx, f, &r)
	case Beside:
		err = beside(ctx, f, &r)
	case Fanout:
		err = fanout(ctx, f, &r)
	default:
		err = throughput(ctx, f, &r, scenario == Ingest)
	}
	if err != nil {
		return r, fmt.Errorf("bench %s: %w", scenario, err)
	}
	return r, nil
}

// prepare makes a deployment of its own, on the embedded broker or on a cluster. done removes it.
func prepare(ctx context.Context, cfg Config) (f *field, done func(), err error) {
	f = &field{cfg: cfg, bootstrap: cfg.Broker, prefix: fmt.Sprintf("bench-%x", time.Now().UnixNano())}
	stop := func() {}
	if f.bootstrap == "" {
		b, err := broker.Start(broker.Config{Log: cfg.Log})
		if err != nil {
			return nil, nil, err
		}
		f.bootstrap = b.Bootstrap()
		stop = func() { _ = b.Close() }
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(f.bootstrap))
	if err != nil {
		stop()
		return nil, nil, err
	}
	m, err := topics.New(topics.Config{Client: client})
	specs := f.specs()
	if err == nil {
		_, err = m.Apply(ctx, specs)
	}
	done = func() {
		if cfg.Broker != "" {
			for _, s := range specs {
				_, _ = kadm.NewClient(client).DeleteTopics(context.WithoutCancel(ctx), s.Name)
			}
		}
		client.Close()
		stop()
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return f, done, nil
}

// specs are the deployment's topics and those of the plain contender.
func (f *field) specs() []topology.Spec {
	specs := topology.Settings{Prefix: f.prefix, Partitions: f.cfg.Partitions, Queues: fanoutQueues()}.System()
	return append(specs,
		topology.Spec{Name: f.topic(plainGroup + "-events"), Partitions: f.cfg.Partitions, Replication: -1},
		topology.Spec{Name: f.topic(plainGroup) + "-table", Partitions: f.cfg.Partitions, Replication: -1,
			Configs: map[string]string{topology.CleanupPolicy: topology.CleanupCompact}})
}

// throughput lets every contender read the same input, one after the other.
func throughput(ctx context.Context, f *field, r *Result, withPlain bool) error {
	if err := f.preload(ctx); err != nil {
		return err
	}
	q, err := quiet(func() (measure, error) {
		most := peak()
		m, err := quiesce(ctx, f)
		r.RSSMiB = most()
		return m, err
	})
	if err != nil {
		return err
	}
	r.Seconds, r.ForeignCPUPercent = round(q.seconds), q.foreign
	r.CompletionsPerS = round(float64(f.cfg.N) / q.seconds)
	r.CPUPerMillion = round(q.cpu.Seconds() / float64(f.cfg.N) * 1e6)
	if r.ChangelogRows, r.ChangelogBytes, err = f.size(ctx, codecs.Table(f.prefix, codecs.GroupController)); err != nil {
		return err
	}
	if f.cfg.Only {
		return nil
	}
	against := func(run func(context.Context, *field) (measure, error)) (float64, error) {
		m, err := quiet(func() (measure, error) { return run(ctx, f) })
		return ratio(m.seconds, q.seconds), err
	}
	if r.RatioFloor, err = against(func(ctx context.Context, f *field) (measure, error) { return floor(ctx, f, batch.New(batch.Config{})) }); err != nil {
		return err
	}
	if r.RatioRaw, err = against(raw); err != nil {
		return err
	}
	if withPlain {
		r.RatioPlain, err = against(plain)
	}
	return err
}

// quiet runs fn without the garbage of what ran before it.
func quiet(fn func() (measure, error)) (measure, error) {
	runtime.GC()
	debug.FreeOSMemory()
	return fn()
}

// size counts the records of a topic and the bytes of their keys and values.
func (f *field) size(ctx context.Context, topic string) (rows, bytes int64, err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(f.bootstrap), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return 0, 0, err
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		return 0, 0, fmt.Errorf("size of %s: %w", topic, err)
	}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return 0, 0, fmt.Errorf("size of %s: %w", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			rows, bytes = rows+1, bytes+int64(len(r.Key)+len(r.Value))
			if end, ok := left[r.Partition]; ok && r.Offset >= end-1 {
				delete(left, r.Partition)
			}
		})
	}
	return rows, bytes, nil
}
