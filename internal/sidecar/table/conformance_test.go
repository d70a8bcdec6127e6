package table_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// TestConformance holds the entries that readers of a batch see.
func TestConformance(t *testing.T) {
	t.Run("C04", lostCompletionsAreNamed)
}

// lostCompletionsAreNamed: the completions of 5 of 10,100 tasks never come. Exactly these are named as missing, and when
// the deadline has closed the batch as timed out.
func lostCompletionsAreNamed(t *testing.T) {
	d := deploy(t)
	const total = 10_100
	d.start("b-1", total)
	lost := []uint32{0, 4321, 4322, 7000, total - 1}
	next := uint32(0)
	for _, i := range lost {
		if i > next {
			d.report("b-1", next, i-1, codecs.OK, "")
		}
		next = i + 1
	}
	var missing []uint32
	for m, err := range d.Missing(d.ctx, "b-1") {
		require.NoError(t, err)
		for _, r := range m.Ranges {
			for i := r.First; i <= r.Last; i++ {
				missing = append(missing, i)
			}
		}
	}
	require.Equal(t, lost, missing)

	_, err := d.Command(d.ctx, "b-1", "extend", &codecs.CommandArgs{OnDeadline: "close", Deadlines: &codecs.Deadlines{CompleteWithin: 1}}, none)
	require.NoError(t, err)
	b, err := d.Wait(d.ctx, "b-1", nil)
	require.NoError(t, err)
	require.Equal(t, "completed_with_failures", b.State)
	require.Equal(t, api.Counts{Total: total, OK: total - 5, TimedOut: 5}, b.Counts)
	var timedOut []uint32
	for x, err := range d.Tasks(d.ctx, "b-1", "timed_out") {
		require.NoError(t, err)
		timedOut = append(timedOut, x.Index)
	}
	require.Equal(t, lost, timedOut)
}
