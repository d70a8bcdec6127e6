package sidecar_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/sidecartest"
)

func TestStatistics(t *testing.T) {
	noon := time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)
	st := sidecartest.NewStats()
	b := setup(t, func(c *sidecar.Config) { c.Stats = st; c.Now = func() time.Time { return noon } })
	owner := func(kind, step string) *codecs.Owner { return &codecs.Owner{Job: "j", Step: step, Type: kind} }
	for i := range 40 { // over partitions and ten days; the last seven are shown
		at := noon.Add(-time.Duration(i%10) * 24 * time.Hour).UnixMilli()
		st.Count(int32(i%4), at, codecs.TypeSubjobsCompleted, &codecs.SubjobsCompleted{Owner: owner("invoices", "s2"), Queue: "render", Attempts: 3,
			Items: []*codecs.ReportItem{codecs.NewItem(0, 1, codecs.OK), codecs.NewItem(2, 2, codecs.Failed)}})
	}
	st.Count(0, noon.UnixMilli(), codecs.TypeJobRequested, &codecs.JobRequested{Type: "invoices"})
	st.Count(1, noon.UnixMilli(), codecs.TypeJobRequested, &codecs.JobRequested{Type: "letters"})

	var list api.StatsList
	b.get("/v1/stats").ok(200, &list)
	require.Equal(t, []string{"2026-03-03", "2026-03-09"}, []string{list.From, list.To})
	require.Len(t, list.Stats, 9, "seven days of the step, one of each job type")
	require.Equal(t, "invoices", list.Stats[0].Type)
	require.Empty(t, list.Stats[0].Step)
	require.EqualValues(t, 1, list.Stats[0].Requested)

	b.get("/v1/stats?by=total&from=2026-01-01&step=s2").ok(200, &list)
	require.Len(t, list.Stats, 1)
	require.EqualValues(t, 40*3, list.Stats[0].Tasks.Ended)
	require.EqualValues(t, 40, list.Stats[0].Tasks.Failed)
	require.EqualValues(t, 40*3, list.Stats[0].Tasks.Attempts)
	b.get("/v1/stats?type=letters&queue=").ok(200, &list)
	require.Len(t, list.Stats, 1)
	b.get("/v1/stats?to=2026-03-01&from=2026-03-01").ok(200, &list)
	require.Len(t, list.Stats, 1)
	require.Equal(t, "2026-03-01", list.Stats[0].Day)

	for _, limit := range []int{1, 2, 4, 9} {
		var got []string
		for cursor := ""; ; {
			list = api.StatsList{}
			b.get(fmt.Sprintf("/v1/stats?limit=%d&cursor=%s", limit, cursor)).ok(200, &list)
			require.LessOrEqual(t, len(list.Stats), limit)
			for _, s := range list.Stats {
				got = append(got, s.Type+" "+s.Step+" "+s.Day)
			}
			if cursor = list.Next; cursor == "" {
				break
			}
		}
		require.Len(t, got, 9)
		require.IsIncreasing(t, got)
	}
	for query, field := range map[string]string{"from=yesterday": "from", "to=2026-13-01": "to", "by=hour": "by", "from=2026-03-10": "from", "job=x": "job", "limit=0": "limit"} {
		b.get("/v1/stats?" + query).names(field)
	}
	st.Ready = sidecar.Readiness{Percent: 10}
	b.get("/v1/stats").problem(503, api.ProblemRecovering)
	b.get("/readyz").problem(503, api.ProblemRecovering)
}
