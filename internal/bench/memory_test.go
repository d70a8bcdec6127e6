package bench_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/internal/bench"
	"github.com/quiesce/quiesce/internal/binary"
)

func TestMain(m *testing.M) { binary.Main(m) }

// TestMemory: controllers in processes of their own take filled tables over, and tell how large they are.
func TestMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("the memory of another process is known on Linux only")
		return
	}
	r, err := bench.Run(t.Context(), bench.Memory, bench.Config{N: 300, Active: 30, Partitions: 2, Program: binary.Path(t)})
	require.NoError(t, err)
	require.Equal(t, 300+30+30, r.Rows)
	for _, mib := range []float64{r.IdleMiB, r.TakenOverMiB, r.OpenMiB, r.CollectedMiB} {
		require.Greater(t, mib, 5.0)
	}
	require.GreaterOrEqual(t, r.MostMiB, r.OpenMiB)
}

// TestAControllerThatEndsIsNotWaitedFor: what it said is in the error.
func TestAControllerThatEndsIsNotWaitedFor(t *testing.T) {
	_, err := bench.Run(t.Context(), bench.Memory, bench.Config{N: 1, Active: 1, Program: "/bin/ls"})
	require.ErrorContains(t, err, "run ended")
}

// TestFanoutKill: a job whose worker process is killed ends. It waits for the killed member's session, so it is one of the
// long variants.
func TestFanoutKill(t *testing.T) {
	if os.Getenv("QUIESCE_TEST_LONG") != "1" {
		t.Log("not run: QUIESCE_TEST_LONG=1")
		return
	}
	r, err := bench.Run(t.Context(), bench.Fanout, bench.Config{N: 5000, Batches: 1, Kill: true, Program: binary.Path(t)})
	require.NoError(t, err)
	require.Less(t, r.KilledS, 20.0, "the session time-out is 10 s")
}
