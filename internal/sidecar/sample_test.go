package sidecar_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/sidecartest"
	"github.com/quiesce/quiesce/topology"
)

const sampleTopology = `
topology: go-index
version: 1
source: paths
topics: {paths: {partitions: 4}, asts: {partitions: 4}, digests: {partitions: 4}}
stages:
  parse:  {in: [paths], out: [asts],    group: go-index.parse}
  digest: {in: [paths], out: [digests], group: go-index.digest}
  report: {in: [asts, digests], group: go-index.report, client: goka}
`

func sampleTopologies(t *testing.T) []*topology.Topology {
	t.Helper()
	one, err := topology.Load([]byte(sampleTopology), "")
	require.NoError(t, err)
	return []*topology.Topology{one}
}

// sampleGroups are the groups of the sample topology: partition 2 of stage parse has lost its owner.
type sampleGroups struct{}

func (sampleGroups) Partitions(context.Context, string) (int32, error) { return 4, nil }

func (sampleGroups) Group(_ context.Context, group string, topics []string) (*sidecar.Group, error) {
	g := &sidecar.Group{State: "Stable", Members: 2}
	for _, topic := range topics {
		for p := range int32(4) {
			in := sidecar.Input{Topic: topic, Partition: p, Committed: 1200 + int64(p), End: 1200 + int64(p),
				Client: fmt.Sprintf("worker-%d", p%2), Host: "10.0.0.7"}
			if group == "go-index.parse" && p == 2 {
				in.Committed, in.Client, in.Host = in.End-312, "", ""
			}
			g.Inputs = append(g.Inputs, in)
		}
	}
	return g, nil
}

// sampleBatches puts six open batches and three that have ended into a deployment.
func sampleBatches(d *sidecartest.Deployment) {
	now := api.Int64(time.Now().UnixMilli())
	stages := func(reported ...uint32) (out []api.Stage) {
		for i, s := range [][2]string{{"digest", "paths"}, {"parse", "paths"}, {"report", "asts"}, {"report", "digests"}} {
			st := api.Stage{Stage: s[0], Topic: s[1], Units: 4, Reported: reported[i], LastAt: now - 3000}
			for p := reported[i]; p < 4; p++ {
				st.Silent = append(st.Silent, p)
			}
			out = append(out, st)
		}
		return out
	}
	invoices := make([]api.Task, 0, 500)
	for i := range uint32(500) {
		switch {
		case i >= 417 && i < 420, i >= 460:
		case i%40 == 7:
			invoices = append(invoices, api.Task{Index: i, Outcome: "failed", Reason: "no such customer", Attempt: 3})
		default:
			invoices = append(invoices, api.Task{Index: i, Outcome: "ok"})
		}
	}
	d.Put(api.Batch{Batch: "go-index", Run: "r1", State: "sealed", Round: 1, Mode: "markers", Topology: &api.Topology{Name: "go-index", Version: 1},
		Counts: api.Counts{Total: 9620, Pending: 9620}, Stages: stages(4, 2, 1, 3), StartedAt: now - 42_000, SealedAt: now - 40_000, LastProgress: now - 3000})
	d.Put(api.Batch{Batch: "nightly-invoices", Run: "01JB7Z0T4W8Y", State: "sealed", Round: 1, Mode: "ledger", Counts: api.Counts{Total: 500},
		Labels: map[string]string{"tenant": "acme", "region": "eu-central"}, StartedAt: now - 130_000, SealedAt: now - 120_000, Rate: 3.5, ETA: now + 12_000,
		Policy: &api.Policy{Kind: "tolerate", Tolerate: "5%"}, Audit: api.Audit{Duplicates: 31}})
	d.Complete("nightly-invoices", invoices...)
	d.Put(api.Batch{Batch: "reprice-catalogue-2026-12-01", Run: "r", State: "sealed", Round: 2, Mode: "ledger", StartedAt: now - 3_600_000, Rate: 412,
		ETA: now + 5_400_000, Counts: api.Counts{Total: 3_000_000, OK: 1_204_000, Skipped: 96_000, TimedOut: 14_000, Running: 64_000, Pending: 1_622_000}})
	d.Put(api.Batch{Batch: "import-csv-0417", Run: "r", State: "open", Round: 1, Mode: "ledger", StartedAt: now - 8000, Counts: api.Counts{OK: 18_240}})
	d.Put(api.Batch{Batch: "thumbnails", Run: "r", State: "sealed", Paused: true, Round: 1, Mode: "ledger", StartedAt: now - 90_000,
		Counts: api.Counts{Total: 40_000, OK: 22_000, Lost: 3, Pending: 17_997}})
	d.Put(api.Batch{Batch: "typo-in-the-id", State: "orphan", Round: 1})
	for _, ended := range []api.Batch{
		{Batch: "archive-2026-11", State: "completed", Counts: api.Counts{Total: 812, OK: 812}},
		{Batch: "export-emea", State: "failed", Reason: "13 failures, 10 tolerated", Counts: api.Counts{Total: 900, OK: 400, Failed: 13, Cancelled: 487}},
		{Batch: "mail-merge", State: "completed_with_failures", Counts: api.Counts{Total: 64, OK: 60, Failed: 4}},
	} {
		ended.Run, ended.Round, ended.Terminal, ended.Mode, ended.StartedAt, ended.EndedAt = "r", 1, true, "ledger", now-900_000, now-600_000
		d.Put(ended)
	}
}
