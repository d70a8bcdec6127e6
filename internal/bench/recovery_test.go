package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRecovery: the table that the scenario fills is one that a controller takes over, and its open batches complete.
func TestRecovery(t *testing.T) {
	r, err := Run(t.Context(), Recovery, Config{N: 300, Active: 30})
	require.NoError(t, err)
	require.Equal(t, 300+30+30, r.Rows)
	require.Positive(t, r.Seconds)
	require.Positive(t, r.SameDiskSeconds)
}
