package stage_test

import (
	"context"
	"fmt"
	"sort"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/feeder"
	"github.com/quiesce/quiesce/processors/stage"
	"github.com/quiesce/quiesce/topology"
)

// BenchmarkStage compares a stage with a bare loop of the same client that does the same work (read, send one record on,
// commit) and knows nothing of batches, side by side on the same broker:
//
//	go test ./processors/stage -run '^$' -bench Stage -benchtime 5x
//
// ratio is records/s of the stage through those of the loop, the median of the rounds; control/task is the number of
// records on the control topic for each task.
func BenchmarkStage(b *testing.B) {
	const n = 400_000
	for _, kind := range []string{"middle", "end"} {
		b.Run(kind, func(b *testing.B) {
			k := setup(b, twoStages)
			k.feed("b-1", "ledger", n)
			name, topic := "copy", k.topo.Source
			if kind == "end" { // reports every task
				name, topic = "count", k.name("b")
				k.preload(topic, n)
			}
			var ratios []float64
			var taken time.Duration
			control := len(k.records(codecs.Topic(k.prefix, codecs.TopicControl)))
			for i := range b.N {
				bare := k.bareLoop(fmt.Sprintf("%s-bare-%d", name, i), topic, kind == "middle", n)
				own := k.timed(name, fmt.Sprintf("%s-own-%d", name, i), n)
				ratios = append(ratios, bare.Seconds()/own.Seconds())
				taken += own
			}
			sort.Float64s(ratios)
			control = len(k.records(codecs.Topic(k.prefix, codecs.TopicControl))) - control
			b.ReportMetric(float64(n*b.N)/taken.Seconds(), "records/s")
			b.ReportMetric(ratios[len(ratios)/2], "ratio")
			b.ReportMetric(float64(control)/float64(n*b.N), "control/task")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// preload writes n tagged records to a topic that no feeder writes.
func (k *kit) preload(topic string, n int) {
	other := *k.topo
	other.Source, other.Name = topic, "preload"
	other.Stages = map[string]topology.Stage{"count": k.topo.Stages["count"]}
	other.Topics = map[string]topology.Topic{topic: k.topo.Topics[topic]}
	k.feed("b-2", "ledger", n, func(c *feeder.Config) { c.Topology = &other })
}

// timed runs the stage in a fresh group and returns the time from the first record to the commit of the last.
func (k *kit) timed(name, group string, n int) time.Duration {
	fresh := *k.topo
	fresh.Stages = map[string]topology.Stage{}
	for s, d := range k.topo.Stages {
		if s == name {
			d.Group = group
		}
		fresh.Stages[s] = d
	}
	var done atomic.Int64
	finished := make(chan struct{})
	h := k.forward(name)
	var began time.Time
	in := k.run(name, func(ctx context.Context, r *stage.Record) ([]stage.Output, error) {
		switch done.Add(1) {
		case 1:
			began = time.Now()
		case int64(n):
			close(finished)
		}
		return h(ctx, r)
	}, func(c *stage.Config) { c.Topology, c.Flow = &fresh, stage.Flow{}; c.Options = nil })
	<-finished
	require.NoError(k.t, in.stop())
	return time.Since(began)
}

// bareLoop is timed for a plain loop: it consumes n records in a group, sends each on, and commits after each poll when all is acked.
func (k *kit) bareLoop(group, topic string, send bool, n int) time.Duration {
	var began time.Time
	c, err := kgo.NewClient(kgo.SeedBrokers(k.bootstrap), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.ProducerLinger(0), kgo.BlockRebalanceOnPoll())
	require.NoError(k.t, err)
	ctx := context.Background()
	for left := n; left > 0; {
		fetches := c.PollRecords(ctx, 2000)
		require.NoError(k.t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			if left--; left == n-1 {
				began = time.Now()
			}
			if send {
				c.Produce(ctx, &kgo.Record{Topic: k.name("b"), Key: r.Key, Value: r.Value, Headers: r.Headers}, nil)
			}
		})
		require.NoError(k.t, c.Flush(ctx))
		require.NoError(k.t, c.CommitUncommittedOffsets(ctx))
		c.AllowRebalance()
	}
	c.CloseAllowingRebalance()
	return time.Since(began)
}
