package stage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/stage"
)

// twoStages is the line a -> copy -> b -> count.
const twoStages = `
topology: two
version: 1
source: ~a
topics: {~a: {partitions: 3}, ~b: {partitions: 3}}
stages:
  copy:  {in: [~a], out: [~b], group: ~copy}
  count: {in: [~b], group: ~count}
`

func end(context.Context, *stage.Record) ([]stage.Output, error) { return nil, nil }

func TestLedgerCountsEveryTaskOnce(t *testing.T) {
	k := setup(t, twoStages)
	f := k.follow()
	k.run("copy", k.forward("copy"))
	k.run("count", end)
	k.feed("b-1", "ledger", 5000)
	b := f.completed(k, "b-1")
	require.Equal(t, map[string]int{"ok": 5000}, b.counts())
	require.Less(t, b.reports, 500, "reports are coalesced")
	require.Empty(t, b.ends, "a ledger batch has no END")
}

func TestLedgerFailuresSkipsAndPanics(t *testing.T) {
	k := setup(t, twoStages)
	f := k.follow()
	tries := make(chan int, 1000)
	k.run("copy", func(ctx context.Context, r *stage.Record) ([]stage.Output, error) {
		switch {
		case r.Index%10 == 1:
			tries <- r.Attempt
			return nil, fmt.Errorf("no good: %s", r.Value)
		case r.Index%10 == 2:
			panic("oh " + string(r.Key))
		case r.Index%10 == 3:
			return nil, fmt.Errorf("filtered: %w", stage.Skip)
		case r.Index%10 == 4 && r.Attempt < 3:
			return nil, errors.New("not yet")
		case r.Index%10 == 5:
			return nil, nil
		}
		return k.forward("copy")(ctx, r)
	})
	k.run("count", func(_ context.Context, r *stage.Record) ([]stage.Output, error) {
		if r.Index%10 == 6 {
			return nil, stage.NoRetry(errors.New("hopeless"))
		}
		return nil, nil
	})
	k.feed("b-1", "ledger", 100)
	b := f.completed(k, "b-1")
	require.Equal(t, map[string]int{"ok": 50, "failed": 30, "skipped": 20}, b.counts())
	require.Equal(t, "no good: v1", b.reasons["0/1"])
	require.Equal(t, "panic: oh k2", b.reasons["0/2"])
	require.Equal(t, "hopeless", b.reasons["0/6"])
	require.Len(t, tries, 30, "three attempts each")

	dead := k.deadLetters()
	require.Len(t, dead, 30)
	for _, d := range dead {
		about, err := codecs.ParseDeadLetter(&d)
		require.NoError(t, err)
		require.NotEmpty(t, about.Reason)
		require.NotZero(t, about.TopicId)
		tag, ok, err := codecs.ParseTag(d.Headers)
		require.True(t, ok && err == nil)
		require.Equal(t, fmt.Sprintf("v%d", tag.Index), string(d.Value), "the original bytes")
	}
}
