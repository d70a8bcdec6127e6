package sidecar_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/sidecartest"
	"github.com/quiesce/quiesce/processors/job"
)

// invoices is a job of one task, a fan-out and one more task.
const invoices = `"definition":{"name":"invoices","version":1,"steps":[
	{"name":"s1","task":{"queue":"prepare"}},
	{"name":"s2","after":["s1"],"fan_out":{"split":"split","queue":"render","window":64,"policy":{"kind":"tolerate","tolerate":"1%","min_sample":100}}},
	{"name":"s3","after":["s2"],"task":{"queue":"report"}}]}`

// jobs is a bundle with a workflow.
type jobs struct {
	*bundle
	w *sidecartest.Workflow
}

func setupJobs(t *testing.T, cfg job.Config, edit ...func(*sidecar.Config)) *jobs {
	t.Helper()
	j := &jobs{}
	j.bundle = setup(t, append([]func(*sidecar.Config){func(c *sidecar.Config) {
		j.w = sidecartest.NewWorkflow(c.Batches.(*sidecartest.Deployment), cfg)
		c.Jobs, c.JobLog = j.w, j.w
	}}, edit...)...)
	return j
}

func (j *jobs) request(id, more string) (out api.Requested) {
	j.t.Helper()
	j.post("/v1/jobs", `{"id":"`+id+`",`+invoices+more+`}`).ok(201, &out)
	return out
}

func (j *jobs) show(id string) (out api.Job) {
	j.t.Helper()
	j.get("/v1/jobs/"+id).ok(200, &out)
	return out
}

// says appends a record that a worker would write.
func (j *jobs) says(key, kind string, data any) {
	j.t.Helper()
	ev := &codecs.Event{Type: kind, ID: fmt.Sprintf("worker-%d", time.Now().UnixNano())}
	switch d := data.(type) {
	case *codecs.TaskCompleted:
		ev.Data = d
	case *codecs.SplitProposed:
		ev.Data = d
	}
	_, err := j.w.Append(j.t.Context(), key, ev)
	require.NoError(j.t, err)
}

func (j *jobs) split(id string, total uint32) {
	j.says(id, codecs.TypeTaskCompleted, &codecs.TaskCompleted{Step: "s1", Round: 1, Outcome: codecs.OK,
		Result: &codecs.Payload{Data: []byte(`{"orders":3}`), ContentType: "application/json"}})
	j.says(id, codecs.TypeSplitProposed, &codecs.SplitProposed{Step: "s2", Round: 1, Proposal: "p1", Total: total,
		Chunks: []*codecs.ChunkPosition{{First: 0}}})
}

func stepStates(j api.Job) string {
	var out []string
	for _, st := range j.Steps {
		out = append(out, st.Step+" "+st.State)
	}
	return strings.Join(out, ", ")
}

func TestJobFromRequestToEnd(t *testing.T) {
	j := setupJobs(t, job.Config{})
	req := j.request("j-1", `,"labels":{"tenant":"acme"},"input":{"data":"eyJmaWxlIjoib3JkZXJzLmNzdiJ9"}`)
	require.Equal(t, "j-1", req.Job)
	var got api.Job
	r := j.get("/v1/jobs/j-1?at_least=" + req.Position.String())
	r.ok(200, &got)
	require.Equal(t, "running", got.State)
	require.Equal(t, req.Request, got.Request)
	require.Equal(t, `{"file":"orders.csv"}`, string(got.Input.JSON))
	require.Equal(t, fmt.Sprintf("%q", fmt.Sprint(int64(got.Version))), r.header.Get("ETag"))
	require.Equal(t, "s1 running, s2 pending, s3 pending", stepStates(got))

	j.split("j-1", 5)
	got = j.show("j-1")
	require.Equal(t, "s1 completed, s2 running, s3 pending", stepStates(got))
	require.Equal(t, `{"orders":3}`, string(got.Steps[0].Result.JSON))
	require.Equal(t, "j-1.s2", got.Steps[1].Batch)

	// While the batch runs, its counts are those of the batch: the job's row has none of them yet.
	j.post("/v1/batches/j-1.s2/reports", `{"items":[{"first":0,"last":2,"outcome":"ok"},{"first":3,"outcome":"failed","reason":"no such customer"}]}`).ok(202, nil)
	require.Equal(t, &api.Counts{Total: 5, Pending: 1, OK: 3, Failed: 1}, j.show("j-1").Steps[1].Counts)
	var list api.JobList
	j.get("/v1/jobs").ok(200, &list)
	require.Equal(t, uint32(3), list.Jobs[0].Steps[1].Counts.OK)
	require.Nil(t, list.Jobs[0].Input, "lists leave large members out")
	require.Nil(t, list.Jobs[0].Steps[0].Result)

	var tasks api.JobTaskList
	j.get("/v1/jobs/j-1/tasks?outcome=failed").ok(200, &tasks)
	require.Equal(t, []api.JobTask{{Step: "s2", Batch: "j-1.s2", Task: tasks.Tasks[0].Task}}, tasks.Tasks)
	require.Equal(t, "no such customer", tasks.Tasks[0].Reason)

	j.post("/v1/batches/j-1.s2/reports", `{"items":[{"first":4,"outcome":"ok"}]}`).ok(202, nil)
	require.Equal(t, "s1 completed, s2 completed_with_failures, s3 running", stepStates(j.show("j-1")))

	// The view of batches may be behind that of jobs: the tasks of a step that has ended are those at its end.
	state := ""
	j.d.Change("j-1.s2", func(b *api.Batch) { state, b.State, b.Terminal = b.State, "sealed", false })
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		j.get("/v1/jobs/j-1/tasks?outcome=failed").ok(200, &tasks)
	}()
	require.Never(t, func() bool {
		select {
		case <-answered:
			return true
		default:
			return false
		}
	}, 100*time.Millisecond, 10*time.Millisecond)
	j.d.Change("j-1.s2", func(b *api.Batch) { b.State, b.Terminal = state, true })
	<-answered
	require.Len(t, tasks.Tasks, 1)
	var wg sync.WaitGroup
	wg.Go(func() { j.get("/v1/jobs/j-1?wait=20s").ok(200, &got) })
	j.says("j-1", codecs.TypeTaskCompleted, &codecs.TaskCompleted{Step: "s3", Round: 1, Outcome: codecs.OK})
	wg.Wait()
	require.Equal(t, "completed_with_failures", got.State)
	require.True(t, got.Terminal)
	require.Equal(t, &api.Counts{Total: 5, OK: 4, Failed: 1}, got.Steps[1].Counts)
}

func TestJobRequestedTwice(t *testing.T) {
	j := setupJobs(t, job.Config{})
	one, two := api.Requested{}, api.Requested{}
	body := `{"id":"j-1",` + invoices + `}`
	j.post("/v1/jobs", body, "Idempotency-Key", "k1").ok(201, &one)
	j.post("/v1/jobs", body, "Idempotency-Key", "k1").ok(201, &two)
	require.Equal(t, one.Request, two.Request)
	require.EqualValues(t, 1, j.show("j-1").Audit.Duplicates)
	require.Len(t, j.w.Tasks(), 1, "it acts once")
	j.post("/v1/jobs", body, "Idempotency-Key", "k2").problem(409, api.ProblemWrongState)
	j.post("/v1/jobs", body).problem(409, api.ProblemWrongState)
	require.Empty(t, j.w.Letters())
}

func TestJobCommands(t *testing.T) {
	j := setupJobs(t, job.Config{})
	j.request("j-1", "")
	j.post("/v1/jobs/j-1:pause", "", "Idempotency-Key", "p1").ok(202, nil)
	require.True(t, j.show("j-1").Paused)
	j.post("/v1/jobs/j-1:resume", "").ok(202, nil)
	require.False(t, j.show("j-1").Paused)
	j.post("/v1/jobs/j-1:pause", "", "Idempotency-Key", "p1").ok(202, nil) // a repeat
	require.False(t, j.show("j-1").Paused)
	var answer api.Command
	j.get("/v1/jobs/j-1/commands/p1").ok(200, &answer)
	require.Equal(t, api.Command{Command: "p1", Verb: "pause", Applied: true, At: answer.At}, answer)
	j.get("/v1/jobs/j-1/commands/none").problem(404, api.ProblemNotFound)

	j.post("/v1/jobs/j-1:extend", `{"deadlines":{"complete_by":"1890000000000"}}`).ok(202, nil)
	require.EqualValues(t, 1890000000000, j.show("j-1").CompleteBy)
	j.post("/v1/jobs/j-1:policy", `{"step":"s2","window":7,"policy":{"kind":"fail_fast"}}`).ok(202, nil)
	st := j.show("j-1").Steps[1]
	require.EqualValues(t, 7, st.Window)
	require.Equal(t, "fail_fast", st.Policy.Kind)
	version := j.show("j-1").Version
	j.post("/v1/jobs/j-1:pause", "", "If-Match", fmt.Sprintf(`"%d"`, version+1)).problem(412, api.ProblemStale)
	j.post("/v1/jobs/j-1:redrive", "").problem(409, api.ProblemWrongState)
	j.post("/v1/jobs/j-1:repair", "").problem(409, api.ProblemWrongState)
	j.w.Quarantine("j-1")
	require.True(t, j.show("j-1").Quarantined)
	j.post("/v1/jobs/j-1:repair", "").ok(202, nil)
	require.False(t, j.show("j-1").Quarantined)

	j.split("j-1", 5)
	j.post("/v1/jobs/j-1:cancel", `{"reason":"changed my mind"}`).ok(202, nil)
	got := j.show("j-1")
	require.Equal(t, "cancelled", got.State)
	require.Equal(t, "changed my mind", got.Reason)
	var b api.Batch
	j.get("/v1/batches/j-1.s2").ok(200, &b)
	require.Equal(t, "cancelled", b.State)
	j.post("/v1/jobs/j-1:cancel", "").problem(409, api.ProblemWrongState)
	j.post("/v1/jobs/j-1:redrive", "").ok(202, nil)
	require.Equal(t, "running", j.show("j-1").State)
}

func TestJobBadInputNamesTheField(t *testing.T) {
	j := setupJobs(t, job.Config{})
	j.request("j-1", "")
	long := strings.Repeat("j", 65)
	for _, c := range []struct{ path, body, field string }{
		{"/v1/jobs", `{}`, "/id"},
		{"/v1/jobs", `{"id":"a b",` + invoices + `}`, "/id"},
		{"/v1/jobs", `{"id":"` + long + `",` + invoices + `}`, "/id"},
		{"/v1/jobs", `{"id":"j"}`, "/type"},
		{"/v1/jobs", `{"id":"j","type":"x","surprise":1}`, "/surprise"},
		{"/v1/jobs", `{"id":"j","type":"x","customer":"a/b"}`, "/customer"},
		{"/v1/jobs", `{"id":"j","type":"x","await_batches":["ok","a b"]}`, "/await_batches/1"},
		{"/v1/jobs", `{"id":"j","type":"x","await_jobs":["j"]}`, "/await_jobs"},
		{"/v1/jobs", `{"id":"j","type":"x","input":{"data":"` + strings.Repeat("QUFB", 30_000) + `"}}`, "/input"},
		{"/v1/jobs", `{"id":"j","type":"x","definition":{"name":"y","steps":[{"name":"a","task":{"queue":"q"}}]}}`, "/definition"},
		{"/v1/jobs", `{"id":"j","definition":{"name":"x","steps":[]}}`, "/definition/steps"},
		{"/v1/jobs", `{"id":"j","definition":{"name":"x","steps":[{"name":"a","task":{"queue":"q"}},{"name":"b"}]}}`, "/definition/steps/1"},
		{"/v1/jobs", `{"id":"j","definition":{"name":"x","steps":[{"name":"a","after":["z"],"task":{"queue":"q"}}]}}`, "/definition/steps/0/after"},
		{"/v1/jobs/j-1:extend", `{}`, "/deadlines"},
		{"/v1/jobs/j-1:extend", `{"deadlines":{"complete_by":"soon"}}`, "/deadlines/complete_by"},
		{"/v1/jobs/j-1:policy", `{"step":"s2"}`, "/policy"},
		{"/v1/jobs/j-1:policy", `{"window":5}`, "/step"},
		{"/v1/jobs/j-1:policy", `{"step":"s9","window":5}`, "/step"},
		{"/v1/jobs/j-1:policy", `{"step":"s2","policy":{"kind":"odd"}}`, "/policy/kind"},
		{"/v1/jobs/j-1:cancel", `{"why":"x"}`, "/why"},
	} {
		t.Run(c.path+c.body[:min(60, len(c.body))], func(t *testing.T) {
			j.t = t
			j.post(c.path, c.body).names(c.field)
		})
	}
	j.t = t
	require.Empty(t, j.w.Letters(), "nothing of it was written")
	for query, field := range map[string]string{"state=open": "state", "cursor=!": "cursor", "requested_after=x": "requested_after", "kind=x": "kind"} {
		j.get("/v1/jobs?" + query).names(field)
	}
	j.get("/v1/jobs/j-1/tasks?step=s9").names("step")
	j.get("/v1/jobs/j-1/tasks?step=s1").names("step")
	j.get("/v1/jobs/j-1?customer=acme").names("customer")
	for _, path := range []string{"/v1/jobs/none", "/v1/jobs/none/tasks", "/v1/jobs/none/commands/c", "/v1/jobs/a%20b"} {
		j.get(path).problem(404, api.ProblemNotFound)
	}
	j.post("/v1/jobs/none:cancel", "").problem(404, api.ProblemNotFound)
	j.post("/v1/jobs/j-1:explode", "").problem(404, api.ProblemNotFound)
}

func TestJobListFiltersAndWalks(t *testing.T) {
	j := setupJobs(t, job.Config{}, func(c *sidecar.Config) { c.ScanRows = 4 })
	var want []string
	for i := range 25 {
		id := fmt.Sprintf("j-%02d", i)
		j.request(id, fmt.Sprintf(`,"customer":"c%d","labels":{"half":"%d"}`, i%2, i/13))
		want = append(want, id)
	}
	j.post("/v1/jobs/j-03:cancel", "").ok(202, nil)
	walk := func(query string, between func(page int)) (ids []string) {
		t.Helper()
		for cursor, page := "", 0; ; page++ {
			var list api.JobList
			j.get("/v1/jobs?"+query+"&cursor="+cursor).ok(200, &list)
			for _, x := range list.Jobs {
				ids = append(ids, x.Job)
			}
			if cursor = list.Next; cursor == "" {
				return ids
			}
			between(page)
		}
	}
	still := func(int) {}
	require.Equal(t, want, walk("limit=3", still))
	require.Equal(t, []string{"j-03"}, walk("state=ended", still))
	require.Len(t, walk("state=active", still), 24)
	require.Len(t, walk("label=half:0&customer=c1", still), 6)
	require.Len(t, walk("type=invoices@1", still), 25)
	require.Empty(t, walk("type=invoices@2", still))
	require.Empty(t, walk("requested_before=1", still))

	// Others come and go while the walk goes on.
	got := walk("limit=3", func(page int) {
		j.request(fmt.Sprintf("a-%02d", page), "")
		j.request(fmt.Sprintf("j-%02d-new", page*3), "")
		j.post(fmt.Sprintf("/v1/jobs/j-%02d:pause", page+4), "").ok(202, nil)
	})
	var old []string
	for _, id := range got {
		if len(id) == 4 && id[0] == 'j' {
			old = append(old, id)
		}
	}
	require.Equal(t, want, old)
}

func TestJobsOfCustomersAreKeptApart(t *testing.T) {
	j := setupJobs(t, job.Config{MaxPerCust: 1}, func(c *sidecar.Config) { c.CustomerKeys = true; c.ScanRows = 2 })
	j.post("/v1/jobs", `{"id":"j-1",`+invoices+`}`).names("/customer")
	for _, c := range []string{"acme", "acme-2", "zeta"} {
		for _, id := range []string{"j-1", "j-2"} {
			req := j.request(id, `,"customer":"`+c+`"`)
			require.Equal(t, c, req.Customer)
		}
	}
	var got api.Job
	j.get("/v1/jobs/j-2?customer=acme").ok(200, &got)
	require.Equal(t, "waiting", got.State)
	require.Equal(t, &api.Awaits{Slot: true}, got.Awaits)
	j.get("/v1/jobs/j-1").names("customer")
	j.get("/v1/jobs/j-1?customer=a/b").names("customer")
	j.get("/v1/jobs/j-1?customer=other").problem(404, api.ProblemNotFound)
	j.post("/v1/jobs/j-1:cancel?customer=acme", "").ok(202, nil)
	j.get("/v1/jobs/j-2?customer=acme").ok(200, &got)
	require.Equal(t, "running", got.State, "the slot is free")
	j.get("/v1/jobs/j-2?customer=zeta").ok(200, &got)
	require.Equal(t, "waiting", got.State)
	var all []string
	for cursor := ""; ; {
		var list api.JobList
		j.get("/v1/jobs?limit=1&cursor="+cursor).ok(200, &list)
		for _, x := range list.Jobs {
			all = append(all, x.Customer+"/"+x.Job)
		}
		if cursor = list.Next; cursor == "" {
			break
		}
	}
	require.Equal(t, []string{"acme/j-1", "acme/j-2", "acme-2/j-1", "acme-2/j-2", "zeta/j-1", "zeta/j-2"}, all)
}

func TestJobTasksArePagedOverSteps(t *testing.T) {
	j := setupJobs(t, job.Config{})
	var steps []string
	for i := range 12 {
		steps = append(steps, fmt.Sprintf(`{"name":"f%02d","fan_out":{"split":"s","queue":"q"}}`, i))
	}
	j.post("/v1/jobs", `{"id":"j-1","definition":{"name":"wide","version":1,"steps":[`+strings.Join(steps, ",")+`]}}`).ok(201, nil)
	var want []string
	for i := range 12 {
		name := fmt.Sprintf("f%02d", i)
		j.says("j-1", codecs.TypeSplitProposed, &codecs.SplitProposed{Step: name, Round: 1, Proposal: "p", Total: 9, Chunks: []*codecs.ChunkPosition{{}}})
		if i%3 == 0 { // the others have no task that failed
			j.post("/v1/batches/j-1."+name+"/reports", `{"items":[{"first":0,"last":4,"outcome":"failed"}]}`).ok(202, nil)
			for k := range 5 {
				want = append(want, fmt.Sprint(name, " ", k))
			}
		}
	}
	for _, limit := range []int{1, 3, 5, 100} {
		var got []string
		for cursor := ""; ; {
			var list api.JobTaskList
			j.get(fmt.Sprintf("/v1/jobs/j-1/tasks?outcome=failed&limit=%d&cursor=%s", limit, cursor)).ok(200, &list)
			require.LessOrEqual(t, len(list.Tasks), limit)
			for _, x := range list.Tasks {
				got = append(got, fmt.Sprint(x.Step, " ", x.Index))
			}
			if cursor = list.Next; cursor == "" {
				break
			}
		}
		require.Equal(t, want, got, "limit %d", limit)
	}
	var list api.JobTaskList
	j.get("/v1/jobs/j-1/tasks?step=f03").ok(200, &list)
	require.Len(t, list.Tasks, 5)
}

func TestJobReadsWaitAndRecover(t *testing.T) {
	j := setupJobs(t, job.Config{}, func(c *sidecar.Config) { c.AtLeastTimeout = 300 * time.Millisecond })
	j.d.Hold()
	req := j.request("j-1", "")
	at := "?at_least=" + req.Position.String()
	j.get("/v1/jobs/j-1"+at).problem(504, api.ProblemNotYet)
	j.get("/v1/jobs"+at).problem(504, api.ProblemNotYet)
	var wg sync.WaitGroup
	wg.Go(func() { j.get("/v1/jobs/j-1"+at).ok(200, nil) })
	wg.Go(func() { j.post("/v1/jobs/j-1:pause", "").ok(202, nil) }) // the view trails: not refused
	j.d.Release()
	wg.Wait()
	j.d.Recover(sidecar.Readiness{Percent: 40})
	for _, path := range []string{"/v1/jobs", "/v1/jobs/j-1", "/v1/jobs/j-1/tasks", "/v1/jobs/j-1/commands/x", "/readyz"} {
		p := j.get(path).problem(503, api.ProblemRecovering)
		require.EqualValues(t, 40, *p.Recovered)
	}
}

func TestWithoutJobsOrStatistics(t *testing.T) {
	b := setup(t)
	for _, path := range []string{"/v1/jobs", "/v1/jobs/j-1", "/v1/stats"} {
		b.get(path).problem(501, api.ProblemUnavailable)
	}
	b.post("/v1/jobs", `{"id":"j"}`).problem(501, api.ProblemUnavailable)
}
