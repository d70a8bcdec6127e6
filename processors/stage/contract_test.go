package stage_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/feeder"
	"github.com/quiesce/quiesce/processors/stage"
	"github.com/quiesce/quiesce/topology"
)

// split sends each record to two topics that end in one stage, and to a sink.
const split = `
topology: split
version: 1
source: ~in
topics: {~in: {partitions: 2}, ~left: {partitions: 3}, ~right: {partitions: 5}, ~log: {partitions: 2, sink: true}}
stages:
  fork: {in: [~in], out: [~left, ~right, ~log], group: ~fork}
  join: {in: [~left, ~right], group: ~join}
`

func TestWhatAHandlerMayReturn(t *testing.T) {
	k := setup(t, split)
	f := k.follow()
	left, right, log := k.name("left"), k.name("right"), k.name("log")
	k.run("fork", func(_ context.Context, r *stage.Record) ([]stage.Output, error) {
		both := []stage.Output{{Topic: left, Key: r.Key, Value: r.Value}, {Topic: right, Key: r.Key, Value: r.Value}}
		switch r.Index {
		case 0:
			return append(both, stage.Output{Topic: log, Value: []byte("seen")}), nil
		case 1: // filtered on one leg only
			return both[:1], nil
		case 2:
			return append(both, both[0]), nil
		case 3:
			return []stage.Output{{Topic: k.topo.Source}}, nil
		case 4:
			return append(both[:1], stage.Output{Topic: right, Value: bytes.Repeat([]byte("x"), 2000)}), nil
		case 5: // nothing was sent of an attempt that failed
			if r.Attempt == 1 {
				return both, errors.New("after all")
			}
		}
		return both, nil
	}, func(c *stage.Config) { c.Flow.MaxRecord = 1000 })
	var mu sync.Mutex
	got := map[string]int{}
	k.run("join", func(_ context.Context, r *stage.Record) ([]stage.Output, error) {
		mu.Lock()
		defer mu.Unlock()
		got[string(r.Key)+" "+r.Topic]++
		return nil, nil
	})
	k.feed("b-1", "ledger", 6)
	b := f.completed(k, "b-1")
	require.Equal(t, map[string]int{"ok": 2, "skipped": 1, "failed": 3}, b.counts())
	require.Contains(t, b.reasons["0/2"], "two records to "+left)
	require.Contains(t, b.reasons["0/3"], "is not an output of stage fork")
	require.Contains(t, b.reasons["0/4"], "at most 1000 can be sent")
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, map[string]int{"k0 " + left: 1, "k0 " + right: 1, "k1 " + left: 1, "k5 " + left: 1, "k5 " + right: 1}, got)
	sunk := k.records(log)
	require.Len(t, sunk, 1)
	require.Empty(t, sunk[0].Headers, "a sink is outside the batch")
}

const traced = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// feedTraced feeds n records with a traceparent and a header of the user's own.
func (k *kit) feedTraced(batch string, n int) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	f, err := feeder.New(feeder.Config{Topology: k.topo, Bootstrap: k.bootstrap, Prefix: k.prefix, Batch: batch, Mode: topology.ModeMarkers})
	require.NoError(k.t, err)
	defer func() { require.NoError(k.t, f.Close()) }()
	require.NoError(k.t, f.Start(ctx))
	for range n {
		_, err := f.Send(ctx, nil, []byte("v"), codecs.Header{Key: codecs.HeaderTraceparent, Value: []byte(traced)},
			codecs.Header{Key: "mine", Value: []byte("x")})
		require.NoError(k.t, err)
	}
	_, err = f.Seal(ctx)
	require.NoError(k.t, err)
}

// data are the data records of a topic, with their tags.
func (k *kit) data(topic string) (recs []codecs.Record, tags []codecs.Tag) {
	for _, r := range k.records(topic) {
		tag, ok, err := codecs.ParseTag(r.Headers)
		require.NoError(k.t, err)
		require.True(k.t, ok)
		if !tag.IsControl() {
			recs, tags = append(recs, r), append(tags, tag)
		}
	}
	return recs, tags
}

func TestHeadersAndPartitionsOfChildren(t *testing.T) {
	k := setup(t, split)
	f := k.follow()
	left, right := k.name("left"), k.name("right")
	k.run("fork", func(_ context.Context, r *stage.Record) ([]stage.Output, error) {
		return []stage.Output{
			{Topic: left, Key: []byte("same"), Value: r.Value, Headers: []codecs.Header{
				{Key: "own", Value: []byte("y")}, {Key: codecs.HeaderIndex, Value: []byte("99")}, {Key: codecs.HeaderTraceparent, Value: []byte("00-other")}}},
			{Topic: right, Value: r.Value},
		}, nil
	})
	k.run("join", end)
	k.feedTraced("b-1", 20)
	f.completed(k, "b-1")

	recs, tags := k.data(left)
	require.Len(t, recs, 20)
	seen := map[uint32]bool{}
	for i, r := range recs {
		require.Equal(t, codecs.Partition([]byte("same"), 3), r.Partition)
		seen[tags[i].Index] = true
		own, _ := r.Header("own")
		require.Equal(t, "y", string(own))
		trace, _ := r.Header(codecs.HeaderTraceparent)
		require.Equal(t, "00-other", string(trace), "what the handler says about the trace stands")
		_, passed := r.Header("mine")
		require.False(t, passed, "the user's headers are the handler's to pass on")
	}
	require.Len(t, seen, 20, "the index is the root's, whatever the handler says")
	recs, tags = k.data(right)
	spread := map[int32]int{}
	for i, r := range recs {
		spread[r.Partition]++
		require.Equal(t, traced, tags[i].Trace, "the trace is passed through")
		require.NotEmpty(t, tags[i].Plan)
	}
	require.Greater(t, len(spread), 1, "records without a key are spread")
}

// recorder is a tracer that keeps what it started.
type recorder struct {
	noop.Tracer
	mu    sync.Mutex
	spans []*recorded
}

type recorded struct {
	noop.Span
	name          string
	parent, own   trace.SpanContext
	ended, failed bool
}

func (s *recorded) SpanContext() trace.SpanContext { return s.own }
func (s *recorded) End(...trace.SpanEndOption)     { s.ended = true }
func (s *recorded) SetStatus(c codes.Code, reason string) {
	s.failed = c == codes.Error && reason != ""
}

func (r *recorder) Start(ctx context.Context, name string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &recorded{name: name, parent: trace.SpanContextFromContext(ctx)}
	s.own = s.parent.WithSpanID(trace.SpanID{byte(len(r.spans) + 1)}).WithRemote(false)
	r.spans = append(r.spans, s)
	return trace.ContextWithSpan(ctx, s), s
}

func TestSpansAreLinkedThroughTheRecords(t *testing.T) {
	k := setup(t, twoStages)
	f := k.follow()
	r := &recorder{}
	tracer := func(c *stage.Config) { c.Tracer = r }
	k.run("copy", k.forward("copy"), tracer)
	k.run("count", func(context.Context, *stage.Record) ([]stage.Output, error) {
		return nil, stage.NoRetry(errors.New("no"))
	}, tracer)
	k.feedTraced("b-1", 1)
	f.completed(k, "b-1")
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Len(t, r.spans, 2)
	first, second := r.spans[0], r.spans[1]
	require.Equal(t, "copy process, count process", first.name+", "+second.name)
	require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", first.own.TraceID().String())
	require.Equal(t, "00f067aa0ba902b7", first.parent.SpanID().String())
	require.Equal(t, first.own.SpanID(), second.parent.SpanID())
	require.True(t, first.ended && second.ended)
	require.True(t, second.failed && !first.failed)
}

func TestCountersSayWhatEachUnitDid(t *testing.T) {
	k := setup(t, twoStages)
	f := k.follow()
	counters := &stage.Counters{}
	k.run("copy", func(ctx context.Context, r *stage.Record) ([]stage.Output, error) {
		switch r.Index {
		case 1:
			return nil, errors.New("no")
		case 2:
			return nil, stage.Skip
		}
		return k.forward("copy")(ctx, r)
	}, func(c *stage.Config) { c.Counters = counters })
	k.run("count", end)
	k.feed("b-1", "markers", 30)
	f.completed(k, "b-1")
	k.drained("copy", k.topo.Source)
	require.Eventually(t, func() bool { return counters.Total().Ended == 3 }, patience, 1e6)
	total := counters.Total()
	total.Committed = 0
	require.Equal(t, stage.Count{Consumed: 30, Failed: 1, Skipped: 1, Produced: 28, Retries: 2, Markers: 3, Ended: 3, DeadLetter: 1}, total)
	for name, n := range counters.Units() {
		require.Equal(t, "copy", name.Stage)
		require.Positive(t, n.Committed)
	}
}

func TestConfigReportsEveryFault(t *testing.T) {
	require.ErrorContains(t, stage.Run(context.Background(), stage.Config{}), "no topology")
	k := setup(t, split)
	err := stage.Run(context.Background(), stage.Config{Topology: k.topo, Stage: "nope", Flow: stage.Flow{Attempts: -1}})
	for _, want := range []string{`no stage "nope"`, "no bootstrap server", "no handler", "negative number"} {
		require.ErrorContains(t, err, want)
	}
	goka := *k.topo
	goka.Stages = map[string]topology.Stage{"join": k.topo.Stages["join"]}
	join := goka.Stages["join"]
	join.Client = topology.ClientGoka
	goka.Stages["join"] = join
	err = stage.Run(context.Background(), stage.Config{Topology: &goka, Stage: "join", Bootstrap: k.bootstrap, Handler: end})
	require.ErrorContains(t, err, "declared with client: goka")
}

// A topic with fewer partitions than declared is an error at once; one that is not there yet is waited for.
func TestTopicsThatAreNotAsDeclared(t *testing.T) {
	k := setup(t, twoStages)
	f := k.follow()
	more := *k.topo
	more.Topics = map[string]topology.Topic{k.name("a"): {Partitions: 4}, k.name("b"): {Partitions: 3}}
	err := stage.Run(context.Background(), stage.Config{Topology: &more, Stage: "copy", Bootstrap: k.bootstrap, Handler: end, Log: k.log})
	require.ErrorContains(t, err, "has 3 partitions, 4 are declared")

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err = k.admin.DeleteTopics(ctx, k.name("b"))
	require.NoError(t, err)
	k.run("copy", k.forward("copy"))
	k.create(k.name("b"), 3)
	k.run("count", end)
	k.feed("b-1", "ledger", 10)
	require.Equal(t, map[string]int{"ok": 10}, f.completed(k, "b-1").counts())
}
