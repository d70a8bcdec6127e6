package sidecar_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/sidecartest"
	"github.com/quiesce/quiesce/processors/job"
)

// sampleJobs is a workflow with jobs in many states, and the hand that moves them.
type sampleJobs struct {
	t  *testing.T
	d  *sidecartest.Deployment
	w  *sidecartest.Workflow
	st *sidecartest.Stats
	n  int
}

// serveJobs serves the page over a workflow.
func serveJobs(t *testing.T) (*sampleJobs, string) {
	t.Helper()
	s := &sampleJobs{t: t, st: sidecartest.NewStats()}
	d, srv := serve(t, func(c *sidecar.Config) {
		s.w = sidecartest.NewWorkflow(c.Batches.(*sidecartest.Deployment), job.Config{})
		c.Jobs, c.JobLog, c.Stats = s.w, s.w, s.st
	})
	s.d = d
	return s, srv.URL
}

// ago sets the clock of the deployment.
func (s *sampleJobs) ago(d time.Duration) { s.d.Clock(time.Now().Add(-d).UnixMilli()) }

func (s *sampleJobs) send(key string, ev *codecs.Event) {
	s.t.Helper()
	s.n++
	ev.ID = fmt.Sprintf("sample-%d", s.n)
	_, err := s.w.Append(context.Background(), key, ev)
	require.NoError(s.t, err)
}

// request makes a job. steps are "name" or "name*" (a fan-out), with "<a,b" for what they come after.
func (s *sampleJobs) request(id, kind string, req *codecs.JobRequested, steps ...string) {
	req.Type, req.Version = kind, 3
	req.Definition = &codecs.JobType{Name: kind, Version: 3}
	for _, text := range steps {
		name, after, _ := strings.Cut(text, "<")
		bare, fan := strings.CutSuffix(name, "*")
		st := &codecs.StepSpec{Name: bare}
		if after != "" {
			st.After = strings.Split(after, ",")
		}
		if fan {
			st.FanOut = &codecs.FanOutSpec{Split: kind + ".split", Queue: kind + "." + bare, Window: 64}
		} else {
			st.Task = &codecs.TaskSpec{Queue: kind + "." + bare}
		}
		req.Definition.Steps = append(req.Definition.Steps, st)
	}
	s.send(id, &codecs.Event{Type: codecs.TypeJobRequested, Data: req})
}

func (s *sampleJobs) task(id, step string, o codecs.Outcome_Code, text string) {
	d := &codecs.TaskCompleted{Step: step, Round: 1, Outcome: o}
	if o == codecs.OK && text != "" {
		d.Result = &codecs.Payload{Data: []byte(text), ContentType: codecs.ContentJSON}
	} else {
		d.Reason = text
	}
	s.send(id, &codecs.Event{Type: codecs.TypeTaskCompleted, Data: d})
}

func (s *sampleJobs) split(id, step string, total uint32) {
	s.send(id, &codecs.Event{Type: codecs.TypeSplitProposed, Data: &codecs.SplitProposed{Step: step, Round: 1, Proposal: "p-" + step, Total: total,
		Chunks: []*codecs.ChunkPosition{{First: 0}}}})
}

func (s *sampleJobs) report(batch string, first, last uint32, o codecs.Outcome_Code, reason string) {
	s.t.Helper()
	item := codecs.NewItem(first, last, o)
	item.Reason, item.Attempt = reason, 2
	_, err := s.d.Append(context.Background(), batch, &codecs.Event{Type: codecs.TypeBatchReport, Data: &codecs.BatchReport{Reporter: "w", Items: []*codecs.ReportItem{item}}})
	require.NoError(s.t, err)
}

func (s *sampleJobs) command(id, verb, reason string) {
	s.n++
	s.send(id, &codecs.Event{Type: codecs.TypeJobCommand, Data: &codecs.JobCommand{Id: fmt.Sprint("c", s.n), Verb: verb, Args: &codecs.JobCommandArgs{Reason: reason}}})
}

// fill makes the jobs.
func (s *sampleJobs) fill() {
	s.ago(14 * time.Minute)
	s.request("invoices-2026-11", "invoices", &codecs.JobRequested{Customer: "acme", Labels: map[string]string{"region": "eu-central", "run-by": "billing"},
		Input: &codecs.Payload{Data: []byte(`{"orders":"s3://acme/orders-2026-11.csv","currency":"EUR"}`), ContentType: codecs.ContentJSON}},
		"prepare", "render*<prepare", "archive<render", "report<render", "notify<archive,report")
	s.ago(13*time.Minute + 21*time.Second)
	s.task("invoices-2026-11", "prepare", codecs.OK, `{"customers":10000,"total":"1289004.50"}`)
	s.split("invoices-2026-11", "render", 10_000)
	s.report("invoices-2026-11.render", 0, 6_311, codecs.OK, "")
	s.report("invoices-2026-11.render", 6_312, 6_318, codecs.Failed, "no such customer")
	s.report("invoices-2026-11.render", 6_319, 6_340, codecs.Skipped, "")
	s.ago(52 * time.Second)
	s.request("catalogue-reprice", "reprice", &codecs.JobRequested{Customer: "globex"}, "load", "price*<load", "publish<price")
	s.ago(44 * time.Second)
	s.task("catalogue-reprice", "load", codecs.OK, "")
	s.ago(9 * time.Second)
	s.request("letters-0417", "letters", &codecs.JobRequested{Customer: "initech", AwaitBatches: []string{"nightly-invoices", "go-index"}}, "write*", "send*<write")
	s.request("thumbnails-spring", "thumbnails", &codecs.JobRequested{Customer: "acme", Priority: 5}, "scan", "scale*<scan")
	s.command("thumbnails-spring", "pause", "")
	s.ago(3 * time.Hour)
	s.request("export-emea", "export", &codecs.JobRequested{Customer: "globex"}, "query", "write*<query", "upload<write")
	s.task("export-emea", "query", codecs.Failed, "relation orders_2019 does not exist")
	s.request("invoices-2026-10", "invoices", &codecs.JobRequested{Customer: "acme"}, "prepare", "render*<prepare", "report<render")
	s.task("invoices-2026-10", "prepare", codecs.OK, "")
	s.split("invoices-2026-10", "render", 812)
	s.ago(2*time.Hour + 31*time.Minute)
	s.report("invoices-2026-10.render", 0, 807, codecs.OK, "")
	s.report("invoices-2026-10.render", 808, 811, codecs.Failed, "address is empty")
	s.task("invoices-2026-10", "report", codecs.OK, `{"sent":808}`)
	s.request("archive-2025", "archive", &codecs.JobRequested{Customer: "initech"}, "list", "move*<list")
	s.command("archive-2025", "cancel", "superseded by archive-2025-b")
}

// count makes statistics of the last days.
func (s *sampleJobs) count() {
	run := codecs.NewSketch()
	for i := range 200 {
		run.Add(float64(800 + 13*i))
	}
	sketch, err := run.AppendBinary(nil)
	require.NoError(s.t, err)
	for i := range 40 {
		at := time.Now().Add(-time.Duration(i) * time.Hour).UnixMilli()
		for k, kind := range []string{"export", "invoices", "reprice"} {
			p, took := int32(i%4), int64((i%9+1)*(k+2))*41_000
			state, ended := codecs.JobState_completed, codecs.TypeJobCompleted
			if (i+k)%13 == 5 {
				state, ended = codecs.JobState_failed, codecs.TypeJobFailed
			}
			s.st.Count(p, at, codecs.TypeJobStarted, &codecs.JobEvent{Type: kind})
			s.st.Count(p, at, ended, &codecs.JobEvent{Type: kind, State: state, StartedAt: at - took, EndedAt: at})
			step := &codecs.JobEvent{Type: kind, Step: "render", Queue: kind + ".render", StepState: codecs.StepState_completed, StartedAt: at - took/2, EndedAt: at}
			s.st.Count(p, at, codecs.TypeStepStarted, step)
			s.st.Count(p, at, codecs.TypeStepCompleted, step)
			s.st.Count(p, at, codecs.TypeSubjobsCompleted, &codecs.SubjobsCompleted{Owner: &codecs.Owner{Job: "j", Step: "render", Type: kind},
				Queue: kind + ".render", Attempts: 230, Timing: &codecs.Timing{Run: sketch},
				Items: []*codecs.ReportItem{codecs.NewItem(0, 220, codecs.OK), codecs.NewItem(221, 220+uint32(k), codecs.Failed)}[:1+min(k, 1)]})
		}
	}
}
