package feeder_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/processors/feeder"
	"github.com/quiesce/quiesce/topology"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

var number atomic.Int64

// world is a deployment with a source of three partitions.
type world struct {
	t         *testing.T
	ctx       context.Context
	broker    *broker.Broker // nil: a real one
	bootstrap string
	prefix    string
	topo      *topology.Topology
	client    *kgo.Client
}

func setup(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, bootstrap: brokertest.Real(), prefix: fmt.Sprintf("f%d-%d", os.Getpid(), time.Now().UnixNano()+number.Add(1))}
	if w.bootstrap == "" {
		w.broker = brokertest.Embedded(t)
		w.bootstrap = w.broker.Bootstrap()
	}
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	src, end := w.prefix+"-src", w.prefix+"-end"
	w.topo = &topology.Topology{Name: "feed", Version: 1, Source: src, Topics: map[string]topology.Topic{src: {}, end: {}},
		Stages: map[string]topology.Stage{"copy": {In: []string{src}, Out: []string{end}, Group: w.prefix + "-copy"},
			"count": {In: []string{end}, Group: w.prefix + "-count"}}}
	w.client = brokertest.Client(t, w.bootstrap)
	for name, n := range map[string]int32{src: 3, end: 2, w.control(): 2} {
		_, err := kadm.NewClient(w.client).CreateTopic(w.ctx, n, -1, nil, name)
		require.NoError(t, err)
	}
	return w
}

func (w *world) control() string { return codecs.Topic(w.prefix, codecs.TopicControl) }

// feeder makes and starts a feeder.
func (w *world) feeder(change ...func(*feeder.Config)) *feeder.Feeder {
	w.t.Helper()
	f, err := feeder.New(w.config(change...))
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, f.Close()) })
	require.NoError(w.t, f.Start(w.ctx))
	return f
}

func (w *world) config(change ...func(*feeder.Config)) feeder.Config {
	cfg := feeder.Config{Topology: w.topo, Bootstrap: w.bootstrap, Prefix: w.prefix, Batch: "b-1", CheckpointEvery: time.Millisecond}
	for _, c := range change {
		c(&cfg)
	}
	return cfg
}

// send sends the records from to (exclusive) of the input, with keys and values that follow from the index.
func (w *world) send(f *feeder.Feeder, from, to int) {
	w.t.Helper()
	for i := from; i < to; i++ {
		index, err := f.Send(w.ctx, []byte(fmt.Sprint("k", i)), []byte(fmt.Sprint("v", i)))
		require.NoError(w.t, err)
		require.EqualValues(w.t, i, index)
	}
}

// records reads a topic from its start to its present end, partition by partition in order.
func (w *world) records(topic string) []codecs.Record {
	w.t.Helper()
	ends, err := kadm.NewClient(w.client).ListEndOffsets(w.ctx, topic)
	require.NoError(w.t, err)
	left := int64(0)
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	c := brokertest.Client(w.t, w.bootstrap, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	var recs []codecs.Record
	for int64(len(recs)) < left {
		fetches := c.PollFetches(w.ctx)
		require.NoError(w.t, fetches.Err())
		fetches.EachRecord(func(k *kgo.Record) {
			r := codecs.Record{Topic: k.Topic, Partition: k.Partition, Offset: k.Offset, Key: k.Key, Value: k.Value}
			for _, h := range k.Headers {
				r.Headers = append(r.Headers, codecs.Header(h))
			}
			recs = append(recs, r)
		})
	}
	return recs
}

// events decodes the control topic.
func (w *world) events() (all []codecs.Event) {
	w.t.Helper()
	for _, r := range w.records(w.control()) {
		var ev codecs.Event
		require.NoError(w.t, codecs.Decode(&r, &ev))
		all = append(all, ev)
	}
	return all
}

// indexes returns how often each root index is in the source, and checks order, partition and headers.
func (w *world) indexes(run string) map[uint32]int {
	w.t.Helper()
	n, last := map[uint32]int{}, map[int32]int64{}
	for _, r := range w.records(w.topo.Source) {
		tag, ok, err := codecs.ParseTag(r.Headers)
		require.True(w.t, ok && err == nil)
		if tag.IsControl() {
			continue
		}
		require.Equal(w.t, run, tag.Run)
		require.Equal(w.t, fmt.Sprint("v", tag.Index), string(r.Value))
		require.Equal(w.t, codecs.Partition(r.Key, 3), r.Partition)
		if n[tag.Index]++; n[tag.Index] == 1 {
			if before, ok := last[r.Partition]; ok {
				require.Greater(w.t, int64(tag.Index), before, "index order in partition %d", r.Partition)
			}
			last[r.Partition] = int64(tag.Index)
		}
	}
	return n
}

func checkpoint(path string) func(*feeder.Config) {
	return func(c *feeder.Config) { c.Checkpoint = path }
}

func TestFeederStartsSendsAndSeals(t *testing.T) {
	w := setup(t)
	f := w.feeder(func(c *feeder.Config) {
		c.Start = &codecs.BatchStart{Labels: map[string]string{"a": "b"}, Mode: "observe", Feeders: 9}
	})
	w.send(f, 0, 1000)
	total, err := f.Seal(w.ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1000, total)
	require.Len(t, f.Run(), 26, "a ULID")
	require.Len(t, w.indexes(f.Run()), 1000)

	evs := w.events()
	require.Len(t, evs, 2)
	start, seal := evs[0].Data.(*codecs.BatchStart), evs[1].Data.(*codecs.BatchSeal)
	require.Equal(t, "b-1", evs[0].Key)
	require.Equal(t, "ledger", start.Mode)
	require.EqualValues(t, 1, start.Feeders)
	require.Equal(t, "b", start.Labels["a"])
	require.Equal(t, w.topo.Digest(), start.Topology.Digest)
	require.Len(t, start.Legs, 1)
	require.Equal(t, f.Run(), start.Run)
	require.Equal(t, f.Run(), seal.Run)
	require.EqualValues(t, 1000, seal.Total)
	require.Len(t, seal.PayloadDigest, 32)
}

func TestFeederOfNothing(t *testing.T) {
	w := setup(t)
	total, err := w.feeder().Seal(w.ctx)
	require.NoError(t, err)
	require.Zero(t, total)
	require.EqualValues(t, 0, w.events()[1].Data.(*codecs.BatchSeal).Total)
}

func TestFeederSendsEndBehindTheDataOnEveryPartition(t *testing.T) {
	w := setup(t)
	f := w.feeder(func(c *feeder.Config) { c.Mode, c.Feeders, c.Feeder, c.Run = "markers", 2, 1, "r1" })
	w.send(f, 0, 2) // at least one partition has no data
	_, err := f.Seal(w.ctx)
	require.NoError(t, err)
	start := w.events()[0].Data.(*codecs.BatchStart)
	require.EqualValues(t, 2, start.Feeders)
	require.Equal(t, "copy 3, count 2", fmt.Sprintf("%s %d, %s %d", start.Units[0].Stage, start.Units[0].Partitions, start.Units[1].Stage, start.Units[1].Partitions))
	ended := map[int32]bool{}
	for _, r := range w.records(w.topo.Source) {
		tag, _, err := codecs.ParseTag(r.Headers)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("markers;feed@1;2;%s-end=2,%s-src=3", w.prefix, w.prefix), tag.Plan)
		require.False(t, ended[r.Partition], "END is behind the data")
		if tag.IsControl() {
			ended[r.Partition] = true
			require.Equal(t, "feeder/"+w.topo.Source+"/1", tag.From.Path())
		} else {
			require.EqualValues(t, 1, tag.Feeder)
		}
	}
	require.Len(t, ended, 3)
}

func TestFeederResumesAfterACrash(t *testing.T) {
	w := setup(t)
	file := filepath.Join(t.TempDir(), "in.quiesce")
	first := w.feeder(checkpoint(file))
	w.send(first, 0, 500)
	require.Eventually(t, func() bool { return first.Acked() == 500 }, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(b), `"acked":500`)
	}, time.Minute, time.Millisecond, "the checkpoint follows")
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	w.send(first, 500, 700) // sent, and not in the checkpoint that is left behind
	require.Eventually(t, func() bool { return first.Acked() == 700 }, time.Minute, time.Millisecond)
	require.NoError(t, first.Close())
	require.NoError(t, os.WriteFile(file, before, 0o600)) // as if it had been killed before it wrote

	second := w.feeder(checkpoint(file))
	require.Equal(t, first.Run(), second.Run())
	require.EqualValues(t, 500, second.Resumed())
	w.send(second, 0, 1000)
	total, err := second.Seal(w.ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1000, total)
	n := w.indexes(first.Run())
	require.Len(t, n, 1000)
	for i, times := range n {
		want := 1
		if i >= 500 && i < 700 {
			want = 2 // the same index: counts once
		}
		require.Equal(t, want, times, "index %d", i)
	}

	third := w.feeder(checkpoint(file))
	w.send(third, 0, 1000)
	total, err = third.Seal(w.ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1000, total)
	require.Equal(t, n, w.indexes(first.Run()), "feeding a sealed batch again sends no record")
	seals := map[string]bool{}
	for _, ev := range w.events() {
		if s, ok := ev.Data.(*codecs.BatchSeal); ok {
			seals[fmt.Sprint(ev.ID, s.Total, hex.EncodeToString(s.PayloadDigest))] = true
		}
	}
	require.Len(t, seals, 1, "repeats are the same")
}

func TestFeederRefusesAChangedInput(t *testing.T) {
	w := setup(t)
	file := filepath.Join(t.TempDir(), "in.quiesce")
	first := w.feeder(checkpoint(file))
	w.send(first, 0, 10)
	_, err := first.Seal(w.ctx)
	require.NoError(t, err)

	changed := w.feeder(checkpoint(file))
	w.send(changed, 0, 9)
	_, err = changed.Send(w.ctx, []byte("k9"), []byte("another"))
	require.ErrorIs(t, err, feeder.ErrInputChanged)

	short := w.feeder(checkpoint(file))
	w.send(short, 0, 9)
	_, err = short.Seal(w.ctx)
	require.ErrorIs(t, err, feeder.ErrInputChanged)

	long := w.feeder(checkpoint(file))
	w.send(long, 0, 10)
	_, err = long.Send(w.ctx, []byte("k10"), []byte("v10"))
	require.ErrorIs(t, err, feeder.ErrInputChanged)

	swapped := w.feeder(checkpoint(file))
	for _, i := range []int{1, 0, 2, 3, 4, 5, 6, 7, 8} {
		_, err = swapped.Send(w.ctx, []byte(fmt.Sprint("k", i)), []byte(fmt.Sprint("v", i)))
		require.NoError(t, err)
	}
	_, err = swapped.Send(w.ctx, []byte("k9"), []byte("v9"))
	require.ErrorIs(t, err, feeder.ErrInputChanged)
}

func TestFeederRefusesACheckpointOfAnotherFeeding(t *testing.T) {
	w := setup(t)
	file := filepath.Join(t.TempDir(), "in.quiesce")
	w.feeder(checkpoint(file))
	for want, change := range map[string]func(*feeder.Config){
		"batch b-1, this is b-2":   func(c *feeder.Config) { c.Batch = "b-2" },
		"mode ledger, this is mar": func(c *feeder.Config) { c.Mode = "markers" },
		"this is other":            func(c *feeder.Config) { c.Run = "other" },
		"this is feed@2": func(c *feeder.Config) {
			next := *w.topo
			next.Version = 2
			c.Topology = &next
		},
	} {
		f, err := feeder.New(w.config(checkpoint(file), change))
		require.NoError(t, err)
		err = f.Start(w.ctx)
		require.ErrorIs(t, err, feeder.ErrCheckpoint)
		require.ErrorContains(t, err, want)
		require.NoError(t, f.Close())
	}
	require.NoError(t, os.WriteFile(file, []byte("{}"), 0o600))
	f, err := feeder.New(w.config(checkpoint(file)))
	require.NoError(t, err)
	require.ErrorIs(t, f.Start(w.ctx), feeder.ErrCheckpoint)
	require.NoError(t, f.Close())
}

func TestFeederKeepsTheCountsOfTheFirstStart(t *testing.T) {
	w := setup(t)
	file := filepath.Join(t.TempDir(), "in.quiesce")
	first := w.feeder(checkpoint(file))
	w.send(first, 0, 50)
	require.NoError(t, first.Close())
	_, err := kadm.NewClient(w.client).UpdatePartitions(w.ctx, 7, w.topo.Source)
	require.NoError(t, err)
	second := w.feeder(checkpoint(file))
	w.send(second, 0, 100)
	_, err = second.Seal(w.ctx)
	require.NoError(t, err)
	require.Len(t, w.indexes(first.Run()), 100, "all on the three partitions of the first START")
}

func TestTwoFeedersShareABatch(t *testing.T) {
	w := setup(t)
	for i := range uint32(2) {
		f := w.feeder(func(c *feeder.Config) { c.Feeders, c.Feeder, c.Run = 2, i, "r1" })
		w.send(f, 0, 10*int(i+1))
		total, err := f.Seal(w.ctx)
		require.NoError(t, err)
		require.EqualValues(t, 10*(i+1), total)
	}
	totals := map[uint32]uint32{}
	for _, ev := range w.events() {
		if s, ok := ev.Data.(*codecs.BatchSeal); ok {
			totals[s.Feeder] = s.Total
		}
	}
	require.Equal(t, map[uint32]uint32{0: 10, 1: 20}, totals)
}

// The seal leaves only when all records are acked.
func TestFeederDoesNotSealWhatIsNotAcked(t *testing.T) {
	w := setup(t)
	if w.broker == nil {
		w.broker = brokertest.Embedded(t) // answers are held back by a hook
		w.bootstrap = w.broker.Bootstrap()
		w.client = brokertest.Client(t, w.bootstrap)
		for name, n := range map[string]int32{w.topo.Source: 3, w.prefix + "-end": 2, w.control(): 2} {
			_, err := kadm.NewClient(w.client).CreateTopic(w.ctx, n, -1, nil, name)
			require.NoError(t, err)
		}
	}
	f := w.feeder()
	refuse(w.broker.Cluster(), w.topo.Source)
	w.send(f, 0, 5)
	ctx, cancel := context.WithCancelCause(w.ctx)
	gone := errors.New("gone")
	done := make(chan error, 1)
	go func() { _, err := f.Seal(ctx); done <- err }()
	cancel(gone)
	require.ErrorIs(t, <-done, gone)
	require.Len(t, w.events(), 1, "no seal")
	require.Zero(t, f.Acked())
}

// refuse makes the broker answer produce requests to a topic with an error that clients retry.
func refuse(c *kfake.Cluster, topic string) {
	c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		p := req.(*kmsg.ProduceRequest)
		resp := p.ResponseKind().(*kmsg.ProduceResponse)
		hit := false
		for _, t := range p.Topics {
			rt := kmsg.NewProduceResponseTopic()
			rt.Topic, rt.TopicID = t.Topic, t.TopicID
			hit = hit || t.Topic == topic || t.TopicID != [16]byte{} && c.TopicInfo(topic).TopicID == t.TopicID
			for _, part := range t.Partitions {
				rp := kmsg.NewProduceResponseTopicPartition()
				rp.Partition, rp.ErrorCode = part.Partition, 19 // not enough replicas
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp, nil, hit
	})
}

func TestFeederHeadersAndKeys(t *testing.T) {
	w := setup(t)
	f := w.feeder()
	_, err := f.Send(w.ctx, nil, []byte("v"), codecs.Header{Key: codecs.HeaderBatch, Value: []byte("x")})
	require.ErrorContains(t, err, "header quiesce-batch is the feeder's")
	trace := "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for range 6 {
		_, err = f.Send(w.ctx, nil, []byte("v"), codecs.Header{Key: codecs.HeaderTraceparent, Value: []byte(trace)})
		require.NoError(t, err)
	}
	_, err = f.Seal(w.ctx)
	require.NoError(t, err)
	n := map[int32]int{}
	for _, r := range w.records(w.topo.Source) {
		n[r.Partition]++
		tag, _, err := codecs.ParseTag(r.Headers)
		require.NoError(t, err)
		require.Equal(t, trace, tag.Trace)
	}
	require.Equal(t, map[int32]int{0: 2, 1: 2, 2: 2}, n, "records without a key are spread by their index")
}

func TestFeederIsUsedInOrder(t *testing.T) {
	w := setup(t)
	f, err := feeder.New(w.config())
	require.NoError(t, err)
	_, err = f.Send(w.ctx, nil, nil)
	require.ErrorContains(t, err, "Start, then Send, then Seal")
	_, err = f.Seal(w.ctx)
	require.Error(t, err)
	require.NoError(t, f.Start(w.ctx))
	require.Error(t, f.Start(w.ctx))
	_, err = f.Seal(w.ctx)
	require.NoError(t, err)
	_, err = f.Send(w.ctx, nil, nil)
	require.Error(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
}

func TestFeederConfigReportsEveryFault(t *testing.T) {
	_, err := feeder.New(feeder.Config{Batch: "a b", Feeders: 2, Feeder: 2, CheckpointEvery: -1})
	for _, want := range []string{"no topology", "no bootstrap server", `batch id "a b"`, "several feeders share a run", "feeder 2 of 2",
		"negative time"} {
		require.ErrorContains(t, err, want)
	}
}
