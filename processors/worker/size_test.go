package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/processors/worker"
)

// The founding example: 10,000 tasks of a minute within 90 minutes.
var founding = worker.Load{Tasks: 10_000, Run: time.Minute, Deadline: 90 * time.Minute, Retries: 0.05, Crashes: 0.01}

func TestSize(t *testing.T) {
	p, err := worker.Size(founding)
	require.NoError(t, err)
	require.Equal(t, 112, p.LowerBound)
	require.Greater(t, p.Workers, p.LowerBound)
	require.Less(t, p.Workers, 150)
	ideal := founding
	ideal.Retries, ideal.Crashes, ideal.PerTask = 0, 0, time.Nanosecond
	p, err = worker.Size(ideal)
	require.NoError(t, err)
	require.Equal(t, 112, p.LowerBound)
	require.LessOrEqual(t, p.Workers, 114)
	for _, bad := range []worker.Load{{}, {Tasks: 1, Run: 2, Deadline: 1}, {Tasks: 1, Run: 1, Deadline: 2, Retries: 1},
		{Tasks: 100, Run: time.Minute, Deadline: 2 * time.Minute, Retries: 0.5}} {
		_, err := worker.Size(bad)
		require.Error(t, err, "%+v", bad)
	}
}
