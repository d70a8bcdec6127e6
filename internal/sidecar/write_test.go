package sidecar_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

func TestBatchFromStartToEnd(t *testing.T) {
	b := setup(t)
	started := b.start("b-1", `,"labels":{"tenant":"acme"}`)
	require.Len(t, started.Run, 26, "a ULID when the request has no run")

	b.post("/v1/batches/b-1:seal", `{"total":3}`).ok(202, nil)
	b.post("/v1/batches/b-1/reports", `{"reporter":"w1","items":[{"first":0,"last":1,"outcome":"ok"}]}`).ok(202, nil)
	var reported api.Reported
	b.post("/v1/batches/b-1/reports", `{"items":[{"first":2,"outcome":"failed","reason":"no such file"}]}`).ok(202, &reported)

	var got api.Batch
	r := b.get("/v1/batches/b-1?at_least=" + reported.Position.String())
	r.ok(200, &got)
	require.Equal(t, "completed_with_failures", got.State)
	require.Equal(t, started.Run, got.Run)
	require.Equal(t, api.Counts{Total: 3, OK: 2, Failed: 1}, got.Counts)
	require.Equal(t, fmt.Sprintf("%q", fmt.Sprint(int64(got.Version))), r.header.Get("ETag"))

	var tasks api.TaskList
	b.get("/v1/batches/b-1/tasks?outcome=failed").ok(200, &tasks)
	require.Len(t, tasks.Tasks, 1)
	require.Equal(t, "no such file", tasks.Tasks[0].Reason)
}

func TestStartKeepsTheGivenRunAndTrace(t *testing.T) {
	b := setup(t)
	trace := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	var out api.Started
	b.post("/v1/batches", `{"id":"b-1","run":"r7"}`, "traceparent", trace).ok(201, &out)
	require.Equal(t, "r7", out.Run)
	require.Equal(t, trace, b.d.Records("b-1")[0].Traceparent)
}

func TestSameIdempotencyKeyActsOnce(t *testing.T) {
	b := setup(t)
	one, two := api.Started{}, api.Started{}
	b.post("/v1/batches", `{"id":"b-1"}`, "Idempotency-Key", "k1").ok(201, &one)
	b.post("/v1/batches/b-1:seal", `{"total":9}`, "Idempotency-Key", "s1").ok(202, nil)
	b.post("/v1/batches", `{"id":"b-1"}`, "Idempotency-Key", "k1").ok(201, &two)
	require.Equal(t, one.Run, two.Run)
	var got api.Batch
	b.get("/v1/batches/b-1").ok(200, &got)
	require.Equal(t, "sealed", got.State, "the second start began no new run")

	b.post("/v1/batches/b-1:cancel", "", "Idempotency-Key", "c1").ok(202, nil)
	b.post("/v1/batches/b-1:cancel", "", "Idempotency-Key", "c1").ok(202, nil)
	b.post("/v1/batches/b-1:cancel", "", "Idempotency-Key", "c2").problem(409, api.ProblemWrongState)
	var answer api.Command
	b.get("/v1/batches/b-1/commands/c1").ok(200, &answer)
	require.True(t, answer.Applied)

	// A seal that is sent again after the batch ended by it.
	b.start("b-2", "")
	b.post("/v1/batches/b-2:seal", `{"total":0}`).ok(202, nil)
	b.get("/v1/batches/b-2").ok(200, &got)
	require.True(t, got.Terminal)
	b.post("/v1/batches/b-2:seal", `{"total":0}`).ok(202, nil)
	b.post("/v1/batches/b-2:seal", `{"total":5}`).problem(409, api.ProblemWrongState)
}

func TestBadInputNamesTheField(t *testing.T) {
	b := setup(t)
	b.start("b-1", "")
	for _, c := range []struct{ path, body, field string }{
		{"/v1/batches", `{}`, "/id"},
		{"/v1/batches", `{"id":"a b"}`, "/id"},
		{"/v1/batches", `{"id":7}`, "/id"},
		{"/v1/batches", `{"id":"b","run":"a/b"}`, "/run"},
		{"/v1/batches", `{"id":"b","mode":"magic"}`, "/mode"},
		{"/v1/batches", `{"id":"b","feeders":-1}`, "/feeders"},
		{"/v1/batches", `{"id":"b","surprise":1}`, "/surprise"},
		{"/v1/batches", `{"id":"b","policy":{"kind":"tolerate","tolerate":"lots"}}`, "/policy/tolerate"},
		{"/v1/batches", `{"id":"b","deadlines":{"seal_by":"soon"}}`, "/deadlines/seal_by"},
		{"/v1/batches", `{"id":"b","mode":"markers"}`, "/topology"},
		{"/v1/batches", `{"id":"b","topology":{"name":"nowhere"}}`, "/topology/name"},
		{"/v1/batches/b-1:seal", `{"total":"many"}`, "/total"},
		{"/v1/batches/b-1:extend", `{}`, "/deadlines"},
		{"/v1/batches/b-1:policy", `{"policy":{"kind":"odd"}}`, "/policy/kind"},
		{"/v1/batches/b-1/reports", `{}`, "/items"},
		{"/v1/batches/b-1/reports", `{"items":[{"first":0},{"first":9,"last":3}]}`, "/items/1/last"},
		{"/v1/batches/b-1/reports", `{"items":[{"first":0,"outcome":"fine"}]}`, "/items/0/outcome"},
		{"/v1/batches/b-1/reports", `{"items":[{"bitmap":"AAAA"}]}`, "/items/0/bitmap"},
	} {
		t.Run(c.path+c.body, func(t *testing.T) {
			b.t = t
			b.post(c.path, c.body).names(c.field)
		})
	}
	b.t = t
	b.post("/v1/batches/b-1:cancel", "", "If-Match", "abc").names("If-Match")
	b.post("/v1/batches/b-1:cancel", "", "Idempotency-Key", "a b").names("Idempotency-Key")
	require.Len(t, b.d.Records("b-1"), 1, "nothing of it was written")
	require.Empty(t, b.d.Records("b"))
}

func TestRefusals(t *testing.T) {
	b := setup(t)
	b.start("b-1", "")
	b.post("/v1/batches/none:cancel", "").problem(404, api.ProblemNotFound)
	b.post("/v1/batches/none/reports", `{"items":[{"first":0}]}`).problem(404, api.ProblemNotFound)
	b.get("/v1/batches/none").problem(404, api.ProblemNotFound)
	b.get("/v1/batches/none/tasks").problem(404, api.ProblemNotFound)
	b.get("/v1/batches/none/missing").problem(404, api.ProblemNotFound)
	b.get("/v1/batches/none/explain").problem(404, api.ProblemNotFound)
	b.get("/v1/batches/b-1/commands/none").problem(404, api.ProblemNotFound)
	b.get("/v1/nothing").problem(404, api.ProblemNotFound)
	b.do("DELETE", "/v1/batches/b-1", "").problem(405, api.ProblemMethod)
	b.post("/v1/batches/b-1:explode", "").problem(404, api.ProblemNotFound)
	b.post("/v1/batches/b-1:redrive", "").problem(409, api.ProblemWrongState)
	b.post("/v1/batches/b-1:repair", "").problem(409, api.ProblemWrongState)
	b.post("/v1/batches/b-1:pause", "", "If-Match", `"99"`).problem(412, api.ProblemStale)
	b.post("/v1/batches/b-1:pause", "", "If-Match", `"1"`).ok(202, nil)
	b.post("/v1/batches", `{"id":`).problem(400, api.ProblemBadRequest)
	b.post("/v1/batches", `{"id":"b"}`, "Content-Type", "text/plain").problem(415, api.ProblemMedia)
	big := `{"id":"b","labels":{"a":"` + string(make([]byte, 300<<10)) + `"}}`
	b.post("/v1/batches", big).problem(413, api.ProblemTooLarge)
}

// A view that trails the log must not refuse what an earlier write allows.
func TestWritesAreNotRefusedBecauseTheViewTrails(t *testing.T) {
	b := setup(t)
	b.d.Hold()
	b.start("b-1", "")
	var wg sync.WaitGroup
	wg.Go(func() { b.post("/v1/batches/b-1:seal", `{"total":1}`).ok(202, nil) })
	wg.Go(func() { b.post("/v1/batches/none:cancel", "").problem(404, api.ProblemNotFound) })
	require.Never(t, func() bool { return len(b.d.Records("b-1")) > 1 }, 50*time.Millisecond, 5*time.Millisecond)
	b.d.Release()
	wg.Wait()
	require.Equal(t, codecs.TypeBatchSeal, b.d.Records("b-1")[1].Type)
}

func TestAtLeast(t *testing.T) {
	b := setup(t, func(c *sidecar.Config) { c.AtLeastTimeout = 300 * time.Millisecond })
	b.d.Hold()
	started := b.start("b-1", "")
	at := "?at_least=" + started.Position.String()
	b.get("/v1/batches/b-1"+at).problem(504, api.ProblemNotYet)
	b.get("/v1/batches"+at).problem(504, api.ProblemNotYet)
	var wg sync.WaitGroup
	wg.Go(func() { b.get("/v1/batches/b-1"+at).ok(200, nil) })
	b.d.Release()
	wg.Wait()
	b.get("/v1/batches/b-1?at_least=x").names("at_least")
	b.get("/v1/batches/b-1?at_least=0:99").problem(504, api.ProblemNotYet)
}

func TestWaitAnswersWhenTheBatchEnds(t *testing.T) {
	b := setup(t)
	b.start("b-1", "")
	var wg sync.WaitGroup
	var got api.Batch
	wg.Go(func() { b.get("/v1/batches/b-1?wait=20s").ok(200, &got) })
	b.post("/v1/batches/b-1:seal", `{"total":0}`).ok(202, nil)
	wg.Wait()
	require.Equal(t, "completed", got.State)
	require.True(t, got.Empty)

	b.start("b-2", "")
	b.get("/v1/batches/b-2?wait=10ms").ok(200, &got)
	require.Equal(t, "open", got.State, "the time is over: what it is now")
	b.get("/v1/batches/b-2?wait=2h").names("wait")
}
