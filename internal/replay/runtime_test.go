package replay

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors"
)

// The rows that the runtime makes of a log are those that the fold makes of it.
func TestDiffAgainstTheRuntime(t *testing.T) {
	const partitions = 3
	d := setup(t, partitions)
	p, err := processors.New(processors.Config{Bootstrap: strings.Split(d.bootstrap, ","), Prefix: d.prefix, Machine: counter{}, DataDir: t.TempDir(),
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-done)
	}()

	all := everything(t).records
	moved := func(r *codecs.Record) bool { _, ok := r.Header(codecs.HeaderMoved); return ok }
	all = slices.DeleteFunc(all, func(r *codecs.Record) bool { // the runtime makes the copy itself
		return moved(r) && codecs.Partition(r.Key, partitions) == r.Partition && r.Value != nil && len(r.Value) > 0
	})
	d.send("control", all...)
	caughtUp := func() bool {
		input := d.open("control")
		status := p.Status()
		if len(status) != partitions {
			return false
		}
		for _, s := range status {
			if _, end := input.Bounds(s.Partition); s.Err != nil || s.Written != end {
				return false
			}
		}
		return true
	}
	require.Eventually(t, caughtUp, time.Minute, 50*time.Millisecond)
	r := d.diff()
	require.True(t, r.OK(), r.Text())
	require.GreaterOrEqual(t, r.Same, 4, r.Text())
	for _, u := range r.Unchecked {
		require.NotEmpty(t, u.Key, "no partition is left out: %s", r.Text())
	}
	t.Log(r.Text())
}
