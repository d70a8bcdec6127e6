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

// Children land where the counts say that the batch pinned, not where those of today do.
func TestChildrenAreRoutedByThePinnedCounts(t *testing.T) {
	w := wrapperOf(t, "split")
	rec, tag := record("files", "markers;branches@1;1;asts=2,digests=1,files=4,paths=4")
	res := handled(t, w, rec, tag, does(nil, Output{Topic: "asts", Key: []byte("k")}, Output{Topic: "asts"}, Output{Topic: "digests", Key: []byte("k")}))
	require.Equal(t, codecs.Partition([]byte("k"), 2), res.Send[0].Partition, "today there are three")
	require.EqualValues(t, (40+1)%2, res.Send[1].Partition)
	require.EqualValues(t, 0, res.Send[2].Partition)
	require.Equal(t, map[string]uint64{"asts": 2, "digests": 1}, res.machine.Produced)
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
