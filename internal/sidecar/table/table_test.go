package table_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/client"
)

func TestSumsAlwaysAddUp(t *testing.T) {
	d := deploy(t)
	d.start("b-1", 100)
	outcomes := []codecs.Outcome_Code{codecs.OK, codecs.Failed, codecs.Skipped, codecs.TimedOut, codecs.Lost, codecs.Cancelled, codecs.Outcome_unspecified}
	for i := range uint32(25) {
		d.report("b-1", i*4, i*4+3, outcomes[int(i)%len(outcomes)], "because")
		b, err := d.Get(d.ctx, "b-1")
		require.NoError(t, err)
		c := b.Counts
		require.EqualValues(t, 100, c.Total)
		require.Equal(t, c.Total, c.Pending+c.Running+c.OK+c.Failed+c.Skipped+c.Cancelled+c.TimedOut+c.Lost, "%+v", c)
	}
}

func TestMissingPrintsExactlyWhatIsMissing(t *testing.T) {
	d := deploy(t)
	const total = 10_000
	d.start("b-1", total)
	dropped := []uint32{17, 340, 341, 5000, 9999}
	next := uint32(0)
	for _, i := range append(dropped, total) {
		if i > next {
			d.report("b-1", next, i-1, codecs.OK, "")
		}
		next = i + 1
	}
	var got []uint32
	for m, err := range d.Missing(d.ctx, "b-1") {
		require.NoError(t, err)
		require.EqualValues(t, len(dropped), m.Count)
		for _, r := range m.Ranges {
			for i := r.First; i <= r.Last; i++ {
				got = append(got, i)
			}
		}
	}
	require.Equal(t, dropped, got)
	x, err := d.Explain(d.ctx, "b-1")
	require.NoError(t, err)
	require.Equal(t, "5 tasks have no outcome: 17, 340-341, 5000, 9999", x.Lines[0])
	require.EqualValues(t, 5, x.Remaining)
}

func TestTasksTellOutcomesAndReasons(t *testing.T) {
	d := deploy(t)
	d.start("b-1", 10)
	d.report("b-1", 0, 3, codecs.OK, "")
	d.report("b-1", 4, 5, codecs.Failed, "no such file")
	d.report("b-1", 6, 6, codecs.Outcome_unspecified, "")
	got := map[uint32]string{}
	for x, err := range d.Tasks(d.ctx, "b-1") {
		require.NoError(t, err)
		got[x.Index] = x.Outcome
	}
	require.Equal(t, map[uint32]string{0: "ok", 1: "ok", 2: "ok", 3: "ok", 4: "failed", 5: "failed", 6: "running", 7: "pending", 8: "pending", 9: "pending"}, got)
	// The reasons come over a topic of their own, a moment after the row.
	require.Eventually(t, func() bool {
		n := 0
		for x, err := range d.Tasks(d.ctx, "b-1", "failed") {
			require.NoError(t, err)
			if x.Reason == "no such file" && x.Reporter == "test" && x.At > 0 {
				n++
			}
		}
		return n == 2
	}, waitLong, tick)
}

// TestVeryLargeBatchIsAnsweredInPages: what a batch of a billion tasks lacks is answered like what one of ten million does;
// only the chunks that lack something are read. Cancel is one command.
func TestVeryLargeBatchIsAnsweredInPages(t *testing.T) {
	for _, total := range []uint32{10_000_000, 1_000_000_000} {
		t.Run(fmt.Sprint(total), func(t *testing.T) {
			d := deploy(t)
			d.start("b-1", total)
			part := total / 100
			for first := uint32(0); first < total; first += part {
				d.report("b-1", first, first+part-2, codecs.OK, "") // the last of each is missing
			}
			ranges := 0
			for m, err := range d.Missing(d.ctx, "b-1") {
				require.NoError(t, err)
				require.EqualValues(t, 100, m.Count)
				ranges += len(m.Ranges)
			}
			require.Equal(t, 100, ranges)
			n := 0
			for x, err := range d.Tasks(d.ctx, "b-1", "pending") {
				require.NoError(t, err)
				require.EqualValues(t, part-1, x.Index%part)
				n++
			}
			require.Equal(t, 100, n)
			_, err := d.Command(d.ctx, "b-1", "cancel", nil, none)
			require.NoError(t, err)
			b, err := d.Wait(d.ctx, "b-1", nil)
			require.NoError(t, err)
			require.EqualValues(t, 100, b.Counts.Cancelled)
			require.EqualValues(t, total-100, b.Counts.OK)
		})
	}
}

func TestCommandsAreAnswered(t *testing.T) {
	d := deploy(t)
	d.start("b-1", 2)
	b, err := d.Get(d.ctx, "b-1")
	require.NoError(t, err)
	paused, err := d.Command(d.ctx, "b-1", "pause", nil, client.WriteOptions{IdempotencyKey: "p1", Version: int64(b.Version)})
	require.NoError(t, err)
	a, err := d.Answer(d.ctx, "b-1", paused.Command)
	require.NoError(t, err)
	require.True(t, a.Applied)
	b, err = d.Get(d.ctx, "b-1")
	require.NoError(t, err)
	require.True(t, b.Paused)
	_, err = d.Command(d.ctx, "b-1", "resume", nil, client.WriteOptions{Version: 1})
	require.ErrorIs(t, err, client.ErrStaleVersion)
	_, err = d.Command(d.ctx, "b-1", "pause", nil, client.WriteOptions{IdempotencyKey: "p1"})
	require.NoError(t, err, "a repeat")
	again, err := d.Get(d.ctx, "b-1")
	require.NoError(t, err)
	require.Equal(t, b.Counts, again.Counts)

	_, err = d.Command(d.ctx, "b-1", "resume", nil, none)
	require.NoError(t, err)
	_, err = d.Command(d.ctx, "b-1", "cancel", nil, none)
	require.NoError(t, err)
	b, err = d.Wait(d.ctx, "b-1", nil)
	require.NoError(t, err)
	require.Equal(t, "cancelled", b.State)
	require.EqualValues(t, 2, b.Counts.Cancelled)
	_, err = d.Command(d.ctx, "b-1", "cancel", nil, none)
	require.ErrorIs(t, err, client.ErrWrongState)
	redriven, err := d.Command(d.ctx, "b-1", "redrive", nil, none)
	require.NoError(t, err)
	a, err = d.Answer(d.ctx, "b-1", redriven.Command)
	require.NoError(t, err)
	require.True(t, a.Applied, a.Reason)
	d.report("b-1", 0, 1, codecs.OK, "")
	_, err = d.Get(d.ctx, "b-1")
	require.NoError(t, err)
	_, err = d.Get(d.ctx, "none")
	require.ErrorIs(t, err, client.ErrNotFound)
}

func TestWalkMeetsEveryBatchOnce(t *testing.T) {
	d := deploy(t)
	var want []string
	for i := range 60 {
		id := fmt.Sprintf("b-%03d", i)
		_, err := d.Start(d.ctx, id, nil, none)
		require.NoError(t, err)
		want = append(want, id)
	}
	for _, id := range want {
		_, err := d.Get(d.ctx, id) // the view has them all
		require.NoError(t, err)
	}
	var got []string
	for b, err := range d.List(d.ctx, client.Filter{States: []string{"active"}, Limit: 7}) {
		require.NoError(t, err)
		got = append(got, b.Batch)
		d.report(b.Batch, 0, 0, codecs.OK, "") // rows change during the walk
	}
	require.Equal(t, want, got)
}

func TestEventsOfABatch(t *testing.T) {
	d := deploy(t)
	s, err := d.Events(d.ctx, client.EventFilter{Subjects: []string{"b-1"}})
	require.NoError(t, err)
	defer s.Close()
	d.start("b-1", 1)
	d.report("b-1", 0, 0, codecs.OK, "")
	var types []string
	var last *api.Event
	for last == nil || last.Type != "batch.completed" {
		last, err = s.Next()
		require.NoError(t, err)
		types = append(types, last.Type)
	}
	require.Contains(t, types, "batch.started")
	require.Contains(t, types, "batch.sealed")
	require.Contains(t, string(last.Data), `"ok":1`)
}
