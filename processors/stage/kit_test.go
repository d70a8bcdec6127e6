package stage_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/processors/feeder"
	"github.com/quiesce/quiesce/processors/stage"
	"github.com/quiesce/quiesce/topology"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

const patience = 60 * time.Second

var kitNumber atomic.Int64

// kit is a deployment of its own on the broker of the test: topics, instances, and what the control topic says.
type kit struct {
	t         testing.TB
	bootstrap string
	prefix    string
	topo      *topology.Topology
	name      func(string) string // real name of a topic of the topology
	client    *kgo.Client
	admin     *kadm.Client
	log       *slog.Logger
	wg        sync.WaitGroup
}

// setup creates the topics of a topology given as YAML, in which ~ stands for a prefix that no other test has.
func setup(t testing.TB, yaml string) *kit {
	t.Helper()
	return setupOn(t, brokertest.Bootstrap(t), yaml)
}

func setupOn(t testing.TB, bootstrap, yaml string) *kit {
	t.Helper()
	unique := fmt.Sprintf("k%d-%d-", os.Getpid(), time.Now().UnixNano()+kitNumber.Add(1))
	k := &kit{t: t, bootstrap: bootstrap, prefix: "q" + strings.TrimSuffix(unique, "-"),
		name: func(s string) string { return unique + s }, log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if testing.Verbose() {
		k.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	var err error
	k.topo, err = topology.Load([]byte(strings.ReplaceAll(yaml, "~", unique)), "")
	require.NoError(t, err)
	k.client = brokertest.Client(t, bootstrap)
	k.admin = kadm.NewClient(k.client)
	for name, topic := range k.topo.Topics {
		k.create(name, max(topic.Partitions, 2))
	}
	for _, name := range []string{codecs.TopicControl, codecs.TopicDeadLetter} {
		k.create(codecs.Topic(k.prefix, name), 2)
	}
	compact := "compact"
	for _, name := range []string{codecs.TopicStatus, codecs.TopicUnits} {
		k.create(codecs.Topic(k.prefix, name), 2, &compact)
	}
	t.Cleanup(k.wg.Wait)
	return k
}

func (k *kit) create(topic string, partitions int32, cleanup ...*string) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	configs := map[string]*string{}
	for _, c := range cleanup {
		configs["cleanup.policy"] = c
	}
	_, err := k.admin.CreateTopic(ctx, partitions, -1, configs, topic)
	require.NoError(k.t, err)
	require.Eventually(k.t, func() bool {
		d, err := k.admin.ListTopics(ctx, topic)
		return err == nil && len(d[topic].Partitions) == int(partitions)
	}, patience, 10*time.Millisecond)
}

// flow makes everything quick.
var flow = stage.Flow{Backoff: time.Millisecond, ReportAfter: time.Millisecond, CommitEvery: 20 * time.Millisecond, DrainFor: 5 * time.Second}

// instance is one running instance of a stage.
type instance struct {
	stop func() error // drains
	done chan error
}

// run starts an instance. change adjusts its configuration.
func (k *kit) run(name string, h stage.Handler, change ...func(*stage.Config)) *instance {
	cfg := stage.Config{Topology: k.topo, Stage: name, Bootstrap: k.bootstrap, Prefix: k.prefix, Handler: h, Flow: flow, Log: k.log,
		Options: []kgo.Opt{kgo.MetadataMinAge(50 * time.Millisecond), kgo.HeartbeatInterval(200 * time.Millisecond)}}
	for _, c := range change {
		c(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	in := &instance{done: make(chan error, 1)}
	k.wg.Go(func() { in.done <- stage.Run(ctx, cfg) })
	var once sync.Once
	var result error
	in.stop = func() error {
		once.Do(func() { cancel(); result = <-in.done })
		return result
	}
	k.t.Cleanup(func() { require.NoError(k.t, in.stop()) })
	return in
}

// forward is a handler that sends one record to each output, with the same key and value.
func (k *kit) forward(name string) stage.Handler {
	outs := k.topo.Stages[name].Out
	return func(_ context.Context, r *stage.Record) ([]stage.Output, error) {
		var o []stage.Output
		for _, topic := range outs {
			o = append(o, stage.Output{Topic: topic, Key: r.Key, Value: r.Value})
		}
		return o, nil
	}
}

// feed feeds n records with keys k0, k1, ... and seals.
func (k *kit) feed(batch, mode string, n int, change ...func(*feeder.Config)) *feeder.Feeder {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cfg := feeder.Config{Topology: k.topo, Bootstrap: k.bootstrap, Prefix: k.prefix, Batch: batch, Mode: mode, Log: k.log}
	for _, c := range change {
		c(&cfg)
	}
	f, err := feeder.New(cfg)
	require.NoError(k.t, err)
	defer func() { require.NoError(k.t, f.Close()) }()
	require.NoError(k.t, f.Start(ctx))
	for i := range n {
		index, err := f.Send(ctx, []byte(fmt.Sprintf("k%d", i)), []byte(fmt.Sprintf("v%d", i)))
		require.NoError(k.t, err)
		require.EqualValues(k.t, i, index)
	}
	total, err := f.Seal(ctx)
	require.NoError(k.t, err)
	require.EqualValues(k.t, n, total)
	return f
}

// records reads a topic from its start to its present end.
func (k *kit) records(topic string) []codecs.Record {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ends, err := k.admin.ListEndOffsets(ctx, topic)
	require.NoError(k.t, err)
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	var recs []codecs.Record
	if len(left) == 0 {
		return nil
	}
	c := brokertest.Client(k.t, k.bootstrap, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer c.Close()
	for len(left) > 0 {
		fetches := c.PollFetches(ctx)
		require.NoError(k.t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
			rec := codecs.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value}
			for _, h := range r.Headers {
				rec.Headers = append(rec.Headers, codecs.Header(h))
			}
			recs = append(recs, rec)
		})
	}
	return recs
}

func (k *kit) deadLetters() []codecs.Record {
	return k.records(codecs.Topic(k.prefix, codecs.TopicDeadLetter))
}
