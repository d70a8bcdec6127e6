package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/topology"
)

func TestBothModesAgreeWithThePlainLoop(t *testing.T) {
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("p%d/f%d.go", i%7, i)] = fmt.Sprintf("package p\n\nvar V%d = 1\n", i%290)
	}
	for name, text := range small {
		files[name] = text
	}
	dir := write(t, files)
	for _, mode := range []string{topology.ModeMarkers, topology.ModeLedger} {
		t.Run(mode, func(t *testing.T) {
			var seen Progress
			r, err := Run(t.Context(), Config{Input: dir, Mode: mode, Watch: func(p Progress) { seen = p }})
			require.NoError(t, err)
			require.Empty(t, r.Differences)
			require.Equal(t, "completed_with_failures", r.State)
			require.Equal(t, 304, r.Index.Files)
			require.Len(t, r.Index.Failures, 2)
			require.Equal(t, StageParse, r.Index.Failures[0].Stage)
			require.Contains(t, r.Index.Failures[0].Reason, "expected 'IDENT'")
			require.Len(t, r.Index.Duplicates, 11)
			require.Equal(t, map[string]int{StageRead: 304, StageParse: 304, StageDigest: 304, StageReport: 606}, r.Stages)
			require.Greater(t, r.Delay, time.Duration(0))
			require.Equal(t, 304, seen.Tasks)
			require.NotEmpty(t, seen.Broker)
		})
	}
}

func TestEmptyFolderCompletesEmpty(t *testing.T) {
	r, err := Run(t.Context(), Config{Input: t.TempDir()})
	require.NoError(t, err)
	require.Equal(t, "completed", r.State)
	require.Zero(t, r.Index.Files)
	require.Empty(t, r.Differences)
}

// a file that disappears between the listing and its turn, or that cannot be opened, is a failure of read with its
// reason.
func TestUnreadableFilesAreNamed(t *testing.T) {
	dir := write(t, map[string]string{"a.go": "package a\n"})
	require.NoError(t, os.Symlink(filepath.Join(dir, "none"), filepath.Join(dir, "link.go")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret.go"), []byte("package a\n"), 0))
	r, err := Run(t.Context(), Config{Input: dir, Mode: topology.ModeLedger})
	require.NoError(t, err)
	require.Empty(t, r.Differences)
	require.Equal(t, 2, r.Index.Files, "a link is no regular file")
	if os.Geteuid() != 0 { // root reads everything
		require.Equal(t, []Failure{{"secret.go", StageRead, "open: permission denied"}}, r.Index.Failures)
	}
}

func TestRunRefusesWhatCannotBe(t *testing.T) {
	_, err := Run(t.Context(), Config{Input: filepath.Join(t.TempDir(), "none")})
	require.ErrorContains(t, err, "input folder")
	_, err = Run(t.Context(), Config{Input: t.TempDir(), Mode: "hope"})
	require.ErrorContains(t, err, "markers or ledger")
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir := write(t, small)
	done := make(chan error, 1)
	go func() {
		_, err := Run(ctx, Config{Input: dir, Keep: true, Done: func(*Result) { cancel() }})
		done <- err
	}()
	require.NoError(t, <-done)
}
