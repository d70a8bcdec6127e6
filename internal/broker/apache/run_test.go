//go:build unix

package apache

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRunPassesTheAddressAndTheExitCode(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	var notes bytes.Buffer
	code, err := Run(context.Background(), &notes, "broker:1", Config{}, []string{"sh", "-c", `echo "$QUIESCE_TEST_BOOTSTRAP$QUIESCE_TEST_KAFKA_STARTS" >` + out + `; exit 7`})
	require.NoError(t, err)
	require.Equal(t, 7, code)
	got, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, "broker:1\n", string(got))
	require.Contains(t, notes.String(), "using the broker on broker:1")
}

func TestRunFails(t *testing.T) {
	for name, command := range map[string][]string{"without a command": nil, "on an unknown command": {"/no/such/command"}} {
		code, err := Run(context.Background(), os.Stderr, "broker:1", Config{}, command)
		require.Error(t, err, name)
		require.NotZero(t, code, name)
	}
	code, err := Run(context.Background(), os.Stderr, "broker:1", Config{}, []string{"sh", "-c", "kill -9 $$"})
	require.NoError(t, err)
	require.Equal(t, 1, code, "a signal is a failure")
}

func TestRunEndsTheCommandWithItsContext(t *testing.T) {
	dir := t.TempDir()
	ready, ended := filepath.Join(dir, "ready"), filepath.Join(dir, "ended")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int)
	go func() {
		code, _ := Run(ctx, os.Stderr, "broker:1", Config{}, []string{"sh", "-c",
			`trap ': >` + ended + `; exit 0' TERM; : >` + ready + `; while :; do sleep 0.01; done`})
		done <- code
	}()
	require.Eventually(t, func() bool { _, err := os.Stat(ready); return err == nil }, 10*time.Second, time.Millisecond)
	cancel()
	require.Equal(t, 1, <-done, "an interrupted run is not a passed one")
	require.FileExists(t, ended, "the command could clean up")
}

func TestRunSaysHowElse(t *testing.T) {
	machine(t)
	_, err := Run(context.Background(), os.Stderr, "", Config{}, []string{"true"})
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, "make test-kafka BOOTSTRAP=host:port")
}
