package sidecar_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// walk follows the pages of a list and returns all ids in the order they came.
func (b *bundle) walk(query string, between func(page int)) (ids []string) {
	b.t.Helper()
	for cursor, page := "", 0; ; page++ {
		var list api.BatchList
		b.get("/v1/batches?"+query+"&cursor="+cursor).ok(200, &list)
		for _, x := range list.Batches {
			ids = append(ids, x.Batch)
		}
		if list.Next == "" {
			return ids
		}
		cursor = list.Next
		if between != nil {
			between(page)
		}
	}
}

func TestBatchThatExistsDuringTheWalkAppearsOnce(t *testing.T) {
	b := setup(t, func(c *sidecar.Config) { c.ScanRows = 7 })
	var want []string
	for i := range 40 {
		id := fmt.Sprintf("b-%02d", i)
		b.start(id, "")
		want = append(want, id)
	}
	got := b.walk("limit=5", func(page int) {
		// Other batches come, and the old ones change, while the walk goes on.
		b.start(fmt.Sprintf("a-%02d", page), "")
		b.start(fmt.Sprintf("b-%02d-new", page*5), "")
		b.post("/v1/batches/b-"+fmt.Sprintf("%02d", page)+":pause", "").ok(202, nil)
	})
	var old []string
	for _, id := range got {
		if !strings.HasSuffix(id, "-new") && strings.HasPrefix(id, "b-") {
			old = append(old, id)
		}
	}
	require.Equal(t, want, old)
}

func TestListFilters(t *testing.T) {
	b := setup(t, func(c *sidecar.Config) { c.ScanRows = 3 })
	for i := range 10 {
		x := api.Batch{Batch: fmt.Sprintf("b-%d", i), State: "open", Labels: map[string]string{"half": fmt.Sprint(i / 5)},
			StartedAt: api.Int64(1000 * (i + 1)), Topology: &api.Topology{Name: "t", Version: uint32(1 + i%2)}}
		if i%5 == 0 {
			x.State, x.Terminal = "completed", true
		}
		b.d.Put(x)
	}
	for query, want := range map[string]string{
		"state=completed":                        "b-0 b-5",
		"state=ended":                            "b-0 b-5",
		"state=completed,open&label=half:1":      "b-5 b-6 b-7 b-8 b-9",
		"state=active&label=half:0":              "b-1 b-2 b-3 b-4",
		"topology=t@1":                           "b-0 b-2 b-4 b-6 b-8",
		"topology=t&state=completed":             "b-0 b-5",
		"topology=other":                         "",
		"started_after=3000&started_before=5000": "b-2 b-3",
		"started_after=1970-01-01T00:00:09Z":     "b-8 b-9",
		"label=half:0&label=none:x":              "",
		"limit=1":                                "b-0 b-1 b-2 b-3 b-4 b-5 b-6 b-7 b-8 b-9",
	} {
		require.Equal(t, want, strings.Join(b.walk(query, nil), " "), query)
	}
	for query, field := range map[string]string{
		"state=done": "state", "label=x": "label", "limit=0": "limit", "limit=1001": "limit", "cursor=!": "cursor",
		"cursor=dDox": "cursor", "started_after=noon": "started_after", "sate=open": "sate",
	} {
		b.get("/v1/batches?" + query).names(field)
	}
}

func TestTasksAndMissingArePaged(t *testing.T) {
	b := setup(t)
	b.start("b-1", "")
	b.post("/v1/batches/b-1:seal", `{"total":100}`).ok(202, nil)
	b.post("/v1/batches/b-1/reports", `{"items":[{"first":0,"last":9,"outcome":"ok"},{"first":20,"last":29,"outcome":"failed"},
		{"first":40,"last":99,"outcome":"ok"}]}`).ok(202, nil)
	var seen []uint32
	for cursor := ""; ; {
		var list api.TaskList
		b.get("/v1/batches/b-1/tasks?outcome=failed&limit=3&cursor="+cursor).ok(200, &list)
		for _, x := range list.Tasks {
			seen = append(seen, x.Index)
		}
		if cursor = list.Next; cursor == "" {
			break
		}
	}
	require.Equal(t, []uint32{20, 21, 22, 23, 24, 25, 26, 27, 28, 29}, seen)

	var m api.Missing
	b.get("/v1/batches/b-1/missing?limit=1").ok(200, &m)
	require.Equal(t, []api.Range{{First: 10, Last: 19}}, m.Ranges)
	require.EqualValues(t, 20, m.Count)
	b.get("/v1/batches/b-1/missing?limit=1&cursor="+m.Next).ok(200, &m)
	require.Equal(t, []api.Range{{First: 30, Last: 39}}, m.Ranges)
	b.get("/v1/batches/b-1/tasks?outcome=odd").names("outcome")
	b.get("/v1/batches/b-1/tasks?cursor=" + m.Next + "x").names("cursor")
}

func TestRecoveringViewServesNothing(t *testing.T) {
	b := setup(t)
	b.start("b-1", "")
	b.d.Recover(sidecar.Readiness{Percent: 42.5})
	for _, path := range []string{"/v1/batches", "/v1/batches/b-1", "/v1/batches/b-1/tasks", "/v1/batches/b-1/missing",
		"/v1/batches/b-1/explain", "/v1/batches/b-1/commands/c", "/v1/batches/none", "/readyz"} {
		r := b.get(path)
		p := r.problem(503, api.ProblemRecovering)
		require.NotNil(t, p.Recovered, path)
		require.Equal(t, 42.5, *p.Recovered)
		require.NotEmpty(t, r.header.Get("Retry-After"))
	}
	b.post("/v1/batches/b-1:cancel", "").problem(503, api.ProblemRecovering)
	b.get("/healthz").ok(200, nil)

	b.d.Recover(sidecar.Readiness{Percent: 100, OK: true, Stale: true})
	for _, path := range []string{"/v1/batches", "/v1/batches/b-1", "/v1/batches/b-1/tasks", "/v1/batches/b-1/missing", "/v1/batches/b-1/explain"} {
		r := b.get(path)
		r.ok(200, nil)
		require.Equal(t, "reconnecting", r.header.Get("Quiesce-View"), path)
	}
	b.get("/readyz").problem(503, api.ProblemRecovering)

	b.d.Recover(sidecar.Readiness{Percent: 100, OK: true})
	b.get("/readyz").ok(200, nil)
}

func TestMetricsNameRoutesNotIds(t *testing.T) {
	b := setup(t)
	b.get("/v1/batches/some-id").problem(404, api.ProblemNotFound)
	r := b.get("/metrics")
	r.ok(200, nil)
	require.Contains(t, string(r.body), `quiesce_sidecar_requests_total{method="GET",route="/v1/batches/{id}`)
	require.Contains(t, string(r.body), "quiesce_sidecar_view_recovered_ratio 1")
	require.NotContains(t, string(r.body), "some-id")
}
