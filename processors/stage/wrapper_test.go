package stage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"pgregory.net/rapid"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/topology"
)

// branches is read -> {parse, digest} -> ends of their own, and a topic beside the batch.
const branches = `
topology: branches
version: 1
source: paths
topics: {paths: {partitions: 4}, files: {partitions: 4}, asts: {partitions: 3}, digests: {partitions: 2}, audit: {partitions: 5}}
stages:
  read:   {in: [paths], out: [files], group: read}
  split:  {in: [files], out: [asts, digests], group: split}
  parse:  {in: [asts], group: parse}
  digest: {in: [digests], group: digest}
  audit:  {in: [paths], out: [audit], group: audit, sink: true}
`

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// wrapperOf is the wrapper of a stage of branches.
func wrapperOf(t testing.TB, stage string, change ...func(*Config)) *wrapper {
	t.Helper()
	topo, err := topology.Load([]byte(branches), "")
	require.NoError(t, err)
	cfg := Config{Topology: topo, Stage: stage, Log: slog.New(slog.DiscardHandler), Flow: Flow{Backoff: 1}}
	for _, c := range change {
		c(&cfg)
	}
	counts := topology.Partitions{}
	for name, topic := range topo.Topics {
		counts[name] = topic.Partitions
	}
	return newWrapper(cfg.WithDefaults(), facts{counts: counts})
}

// record is a record of a batch with the given plan.
func record(topic, plan string, more ...codecs.Header) (*codecs.Record, *codecs.Tag) {
	tag := &codecs.Tag{Batch: "b-1", Run: "r", Round: 2, Index: 7, Plan: plan, Trace: traceparent}
	return &codecs.Record{Topic: topic, Partition: 1, Offset: 40, Key: []byte("in"), Value: []byte("v"),
		Headers: append(codecs.AppendTag(nil, tag), more...)}, tag
}

// does is a handler with a fixed answer.
func does(err error, outs ...Output) Handler {
	return func(context.Context, *Record) ([]Output, error) { return outs, err }
}

// handled handles a record and returns what follows.
func handled(t testing.TB, w *wrapper, rec *codecs.Record, tag *codecs.Tag, h Handler) *Result {
	t.Helper()
	res := &Result{}
	require.NoError(t, w.handle(context.Background(), rec, tag, h, res))
	return res
}

func (r *Result) outcomes() (list []string) {
	for _, it := range r.items {
		list = append(list, fmt.Sprintf("%d/%d %s %s", it.index, it.leg, it.outcome, it.reason))
	}
	slices.Sort(list)
	return list
}

// A record that stops somewhere is accounted on every leg behind the place where it stops, and on no other.
func TestLedgerOutcomesOnEveryLegBehind(t *testing.T) {
	legs := wrapperOf(t, "read").all
	for name, c := range map[string]struct {
		stage, topic string
		h            Handler
		want         []string
	}{
		"goes on":            {"split", "files", does(nil, Output{Topic: "asts"}, Output{Topic: "digests"}), nil},
		"goes on one way":    {"split", "files", does(nil, Output{Topic: "asts"}), []string{"digest skipped"}},
		"goes on no way":     {"split", "files", does(nil), []string{"digest skipped", "parse skipped"}},
		"is filtered":        {"read", "paths", does(fmt.Errorf("why: %w", Skip)), []string{"digest skipped", "parse skipped"}},
		"fails":              {"read", "paths", does(NoRetry(errors.New("no"))), []string{"digest failed no", "parse failed no"}},
		"fails in a branch":  {"parse", "asts", does(NoRetry(errors.New("no"))), []string{"parse failed no"}},
		"ends":               {"digest", "digests", does(nil), []string{"digest ok"}},
		"gives a foreign":    {"split", "files", does(nil, Output{Topic: "paths"}), []string{`digest failed output 0: topic "paths" is not an output of stage split`, `parse failed output 0: topic "paths" is not an output of stage split`}},
		"gives two to a leg": {"split", "files", does(nil, Output{Topic: "asts"}, Output{Topic: "asts"}), []string{"digest failed two records to asts: a ledger batch takes one for each declared output", "parse failed two records to asts: a ledger batch takes one for each declared output"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := wrapperOf(t, c.stage)
			rec, tag := record(c.topic, "")
			var got []string
			res := handled(t, w, rec, tag, c.h)
			for _, it := range res.items {
				require.EqualValues(t, 7, it.index)
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", w.legName(it.leg), it.outcome, it.reason)))
			}
			slices.Sort(got)
			require.Equal(t, c.want, got)
			require.Equal(t, legs, w.all)
			if res.verdict.outcome != codecs.OK {
				require.Empty(t, res.Send, "what failed or was filtered sends nothing on")
			}
		})
	}
}

// legName is the end stage of a leg of branches.
func (w *wrapper) legName(leg uint32) string {
	topo, _ := topology.Load([]byte(branches), "")
	return topo.Legs()[leg].Stage
}

func TestMarkersCountFailuresAndProducts(t *testing.T) {
	plan := "markers;branches@1;1;asts=3,digests=2,files=4,paths=4"
	w := wrapperOf(t, "split")
	rec, tag := record("files", plan)
	res := handled(t, w, rec, tag, does(nil, Output{Topic: "asts"}, Output{Topic: "asts"}, Output{Topic: "digests"}))
	require.True(t, res.cascade)
	require.Empty(t, res.items)
	require.Equal(t, map[string]uint64{"asts": 2, "digests": 1}, res.machine.Produced)
	res = handled(t, w, rec, tag, does(NoRetry(errors.New("no"))))
	require.True(t, res.machine.Failed)
	require.Equal(t, []string{"7/0 failed no"}, res.outcomes())
}

// Children carry the batch's headers and the trace, land where the batch's pinned counts say, and nothing else of the
// input travels with them.
func TestChildrenAreStampedAndRouted(t *testing.T) {
	w := wrapperOf(t, "split")
	plan := "markers;branches@1;1;asts=2,digests=1,files=4,paths=4"
	rec, tag := record("files", plan, codecs.Header{Key: "mine", Value: []byte("stays")})
	other := "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01"
	res := handled(t, w, rec, tag, does(nil,
		Output{Topic: "asts", Key: []byte("k"), Headers: []codecs.Header{{Key: "own", Value: []byte("x")}, {Key: codecs.HeaderIndex, Value: []byte("99")}}},
		Output{Topic: "asts", Headers: []codecs.Header{{Key: codecs.HeaderTraceparent, Value: []byte(other)}}},
		Output{Topic: "digests", Key: []byte("k")}))
	require.Len(t, res.Send, 3)
	for i := range res.Send {
		c := &res.Send[i]
		got, ok, err := codecs.ParseTag(c.Headers)
		require.True(t, ok && err == nil)
		want := *tag
		if i == 1 {
			want.Trace = other
		}
		require.Equal(t, want, got)
		_, foreign := c.Header("mine")
		require.False(t, foreign)
		n := 0
		for _, h := range c.Headers {
			if h.Key == codecs.HeaderTraceparent || h.Key == codecs.HeaderIndex {
				n++
			}
		}
		require.Equal(t, 2, n, "each once")
	}
	own, _ := res.Send[0].Header("own")
	require.Equal(t, "x", string(own))
	require.Equal(t, codecs.Partition([]byte("k"), 2), res.Send[0].Partition, "of the pinned count, not of today's three")
	require.EqualValues(t, (40+1)%2, res.Send[1].Partition)
	require.EqualValues(t, 0, res.Send[2].Partition)
}

// What a handler returns twice lands on the same partitions in the same order, whatever the counts are now.
func TestRoutingIsAFunctionOfTheInput(t *testing.T) {
	w := wrapperOf(t, "split")
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Int32Range(1, 9).Draw(rt, "pinned")
		rec, tag := record("files", fmt.Sprintf("markers;branches@1;1;asts=%d", n))
		rec.Offset = rapid.Int64Range(0, 1<<40).Draw(rt, "offset")
		var outs []Output
		for range rapid.IntRange(1, 5).Draw(rt, "outputs") {
			o := Output{Topic: "asts"}
			if rapid.Bool().Draw(rt, "keyed") {
				o.Key = rapid.SliceOf(rapid.Byte()).Draw(rt, "key")
			}
			outs = append(outs, o)
		}
		first, again := handled(t, w, rec, tag, does(nil, outs...)), handled(t, w, rec, tag, does(nil, outs...))
		require.Equal(t, first.Send, again.Send)
		for i := range first.Send {
			require.Less(t, first.Send[i].Partition, n)
			require.GreaterOrEqual(t, first.Send[i].Partition, int32(0))
		}
	})
}

// The outputs of a sink are outside the batch: a reader of them must not take them for tasks.
func TestOutputsOfASinkAreOutsideTheBatch(t *testing.T) {
	rec, tag := record("paths", "")
	res := handled(t, wrapperOf(t, "audit"), rec, tag, does(nil, Output{Topic: "audit", Key: []byte("k")}, Output{Topic: "audit", Key: []byte("l")}))
	require.Len(t, res.Send, 2)
	require.Empty(t, res.Send[0].Headers)
	require.Len(t, res.items, 1, "the sink is an end itself")
	require.Equal(t, codecs.OK, res.items[0].outcome)
}

// tracer keeps the spans that were started.
type tracer struct {
	noop.Tracer
	spans []*recordedSpan
}

type recordedSpan struct {
	noop.Span
	name        string
	parent, own trace.SpanContext
	status      string
	ended       bool
}

func (t *tracer) Start(ctx context.Context, name string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	s := &recordedSpan{name: name, parent: trace.SpanContextFromContext(ctx)}
	s.own = s.parent.WithSpanID(trace.SpanID{0xaa, byte(len(t.spans))}).WithRemote(false)
	t.spans = append(t.spans, s)
	return trace.ContextWithSpan(ctx, s), s
}

func (s *recordedSpan) SpanContext() trace.SpanContext             { return s.own }
func (s *recordedSpan) SetStatus(_ codes.Code, description string) { s.status = description }
func (s *recordedSpan) End(...trace.SpanEndOption)                 { s.ended = true }

func TestATracerGetsASpanForEachRecord(t *testing.T) {
	tr := &tracer{}
	w := wrapperOf(t, "split", func(c *Config) { c.Tracer = tr })
	rec, tag := record("files", "")
	res := handled(t, w, rec, tag, func(ctx context.Context, _ *Record) ([]Output, error) {
		require.Equal(t, tr.spans[0].own, trace.SpanContextFromContext(ctx), "the handler's own spans hang below")
		return []Output{{Topic: "asts"}, {Topic: "digests"}}, nil
	})
	handled(t, w, rec, tag, does(NoRetry(errors.New("no"))))
	require.Len(t, tr.spans, 2)
	require.Equal(t, "split process", tr.spans[0].name)
	require.Equal(t, "00f067aa0ba902b7", tr.spans[0].parent.SpanID().String())
	require.True(t, tr.spans[0].ended)
	for _, c := range res.Send {
		tp, _ := c.Header(codecs.HeaderTraceparent)
		require.Equal(t, "00-4bf92f3577b34da6a3ce929d0e0e4736-"+tr.spans[0].own.SpanID().String()+"-01", string(tp))
	}
	require.Equal(t, "no", tr.spans[1].status)
}
