package cli_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/cli"
	"github.com/quiesce/quiesce/internal/deploytest"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/table"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/batch"
)

// faulty is the controller with a fault, until it is fixed: it cannot take a report from "poison".
type faulty struct {
	processors.Machine
	fixed atomic.Bool
}

func (f *faulty) Step(row codecs.Row, parts []codecs.Row, offset int64, ev *codecs.Event, out []codecs.Message) []codecs.Message {
	if r, ok := ev.Data.(*codecs.BatchReport); ok && r.Reporter == "poison" && !f.fixed.Load() {
		panic("a fault of ours")
	}
	return f.Machine.Step(row, parts, offset, ev, out)
}

// sidecarOf serves a deployment over HTTP.
func sidecarOf(t *testing.T, d *deploytest.Deployment) (address string) {
	seeds := kgo.SeedBrokers(d.Bootstrap...)
	log, err := sidecar.OpenControlLog(d.Prefix, "sidecar", seeds)
	require.NoError(t, err)
	t.Cleanup(log.Close)
	view, err := table.New(table.Config{Bootstrap: d.Bootstrap, Prefix: d.Prefix, DataDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- view.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	s, err := sidecar.New(sidecar.Config{Sources: sidecar.Sources{Batches: view, Log: log}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	return srv.URL
}

// A batch that met a fault stands still, is repaired after the fix, and completes.
func TestBatchRepair(t *testing.T) {
	isolate(t)
	d := deploytest.New(t)
	m := &faulty{Machine: batch.New(batch.Config{})}
	d.Run(m)
	server := sidecarOf(t, d)
	d.Send(codecs.TopicControl, "b", codecs.TypeBatchStart, &codecs.BatchStart{Run: "r"})
	d.Send(codecs.TopicControl, "b", codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "r", Total: 3})
	for i, reporter := range []string{"w", "poison", "w"} {
		d.Send(codecs.TopicControl, "b", codecs.TypeBatchReport, &codecs.BatchReport{Run: "r", Reporter: reporter,
			Items: []*codecs.ReportItem{codecs.NewItem(uint32(i), uint32(i), codecs.OK)}})
	}
	d.Settled()
	r := run(t, "", "wait", "b", "--server", server, "--timeout", "100ms")
	require.Equal(t, 124, r.code, "it stands still")
	m.fixed.Store(true)

	r = run(t, "", "batch", "repair", "b", "--server", server, "--idempotency-key", "k")
	require.Equal(t, cli.ExitOK, r.code, r.err)
	require.Equal(t, "repair applied to b\n2 records sent back, 0 had been before, 0 refused\n", r.out)
	require.Equal(t, cli.ExitOK, run(t, "", "wait", "b", "--server", server, "--timeout", "30s").code)

	r = run(t, "", "batch", "repair", "b", "--server", server, "--json", "--idempotency-key", "k")
	require.Equal(t, cli.ExitOK, r.code, "a repeat: %s", r.err)
	var done struct{ Repaired api.Repaired }
	require.NoError(t, json.Unmarshal([]byte(r.out), &done))
	require.Equal(t, api.Repaired{Before: 2}, done.Repaired)
	r = run(t, "", "batch", "repair", "b", "--server", server)
	require.Equal(t, cli.ExitError, r.code)
	require.Contains(t, r.err, "not quarantined")
}
