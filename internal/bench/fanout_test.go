package bench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFanout: the jobs of the scenario run and end, and its figures make a table.
func TestFanout(t *testing.T) {
	r, err := Run(t.Context(), Fanout, Config{N: 3000, Batches: 2})
	require.NoError(t, err)
	require.Equal(t, 2, r.Jobs)
	require.InEpsilon(t, 1500/r.Seconds, r.CompletionsPerS, 0.02)
	require.Positive(t, r.P50ms)
	require.GreaterOrEqual(t, r.JobP50ms, r.P50ms)
	require.Positive(t, r.CPUPer10k)
	var out strings.Builder
	require.NoError(t, Table(&out, []Result{r}))
	require.Equal(t, 2, strings.Count(out.String(), "\n"), out.String())
}
