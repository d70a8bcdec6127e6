package sidecar_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/sidecartest"
)

// What autoscalers read: windows, what is left, deadlines with measured times, nothing for what cannot run, and zero for a
// queue without work. It is not counted anew for each scrape.
func TestWorkersWanted(t *testing.T) {
	now := time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)
	st := sidecartest.NewStats()
	b := setup(t, func(c *sidecar.Config) {
		c.Stats, c.Queues, c.ScanRows = st, []string{"idle", "render"}, 2
		c.Now = func() time.Time { return now }
	})
	batch := func(id, queue string, edit func(*api.Batch)) {
		v := api.Batch{Batch: id, State: "sealed", Queue: queue, Counts: api.Counts{Total: 1000, Pending: 900, OK: 100}}
		edit(&v)
		b.d.Put(v)
	}
	batch("wide", "render", func(b *api.Batch) {})
	batch("narrow", "render", func(b *api.Batch) { b.Window = 50 })
	batch("nearly", "render", func(b *api.Batch) { b.Window, b.Counts = 50, api.Counts{Total: 1000, OK: 993, Pending: 7} })
	batch("paused", "render", func(b *api.Batch) { b.Paused = true })
	batch("ended", "render", func(b *api.Batch) { b.State, b.Terminal = "cancelled", true })
	batch("fed", "", func(b *api.Batch) {})
	by := api.Int64(now.Add(time.Minute).UnixMilli())
	batch("timed", "print", func(b *api.Batch) { b.Deadlines = &api.Deadlines{CompleteBy: by} })
	batch("late", "print", func(b *api.Batch) {
		b.Window, b.Deadlines = 30, &api.Deadlines{CompleteBy: api.Int64(now.Add(time.Second).UnixMilli())}
	})
	sketch := codecs.NewSketch()
	sketch.Add(10_000) // ms
	run, err := sketch.AppendBinary(nil)
	require.NoError(t, err)
	st.Count(0, now.UnixMilli(), codecs.TypeSubjobsCompleted, &codecs.SubjobsCompleted{Owner: &codecs.Owner{Job: "j", Step: "s", Type: "t"}, Queue: "print",
		Items: []*codecs.ReportItem{codecs.NewItem(0, 0, codecs.OK)}, Timing: &codecs.Timing{Run: run}})

	wanted := func() map[string]string {
		got := map[string]string{}
		for _, line := range strings.Split(string(b.get("/metrics").body), "\n") {
			var queue, n string
			if _, err := fmt.Sscanf(strings.NewReplacer(`quiesce_workers_wanted{queue="`, "wanted ", `"} `, " ").Replace(line), "wanted %s %s", &queue, &n); err == nil {
				got[queue] = n
			}
		}
		return got
	}
	// 900 tasks of 10 s within 60 s: 150; one second is too short for any, so the window.
	want := map[string]string{"idle": "0", "render": fmt.Sprint(900 + 50 + 7), "print": fmt.Sprint(150 + 30)}
	require.Equal(t, want, wanted())
	b.d.Change("wide", func(b *api.Batch) { b.Terminal = true })
	require.Equal(t, want, wanted(), "not yet counted again")
	now = now.Add(6 * time.Second)
	require.Equal(t, fmt.Sprint(50+7), wanted()["render"])
	b.d.Recover(sidecar.Readiness{Percent: 10})
	now = now.Add(6 * time.Second)
	require.Empty(t, wanted(), "nothing is said while a table loads")
}
