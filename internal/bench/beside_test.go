package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBeside: all small batches and all hot ones of the scenario complete, and every latency is taken.
func TestBeside(t *testing.T) {
	r, err := Run(t.Context(), Beside, Config{N: 20_000, Batches: 8, Partitions: 2})
	require.NoError(t, err)
	for _, ms := range []float64{r.AloneP50ms, r.P50ms, r.SameP50ms, r.BacklogOtherMs, r.BacklogSameMs} {
		require.Positive(t, ms)
	}
	require.Positive(t, r.FedPerS)

	_, err = Run(t.Context(), Beside, Config{Partitions: 1})
	require.ErrorContains(t, err, "partitions")
}
