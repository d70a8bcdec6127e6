package replay_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/deploytest"
	"github.com/quiesce/quiesce/internal/replay"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/batch"
	"github.com/quiesce/quiesce/processors/job"
	"github.com/quiesce/quiesce/processors/notify"
	"github.com/quiesce/quiesce/processors/stats"
)

// machines are those of a whole deployment.
func machines(t *testing.T) []processors.Machine {
	workflow, err := job.New(job.Config{})
	require.NoError(t, err)
	notifier, err := notify.New(notify.Config{Subscriptions: []notify.Subscription{{Event: "job.*", URL: "https://a.example"}}})
	require.NoError(t, err)
	return []processors.Machine{batch.New(batch.Config{}), workflow, stats.New(), notifier}
}

// runJobs drives two jobs to their ends: one completes, one fails in its first step.
func runJobs(d *deploytest.Deployment) {
	def := &codecs.JobType{Name: "invoices", Version: 1, Steps: []*codecs.StepSpec{
		{Name: "s1", Task: &codecs.TaskSpec{Queue: deploytest.Queue}},
		{Name: "s2", After: []string{"s1"}, FanOut: &codecs.FanOutSpec{Split: deploytest.Queue, Queue: deploytest.Queue}},
	}}
	for _, id := range []string{"good", "bad"} {
		d.Send(codecs.TopicJobs, id, codecs.TypeJobRequested, &codecs.JobRequested{Type: "invoices", Version: 1, Definition: def})
		d.Await(codecs.TypeStepStarted, id, 1)
	}
	d.Send(codecs.TopicJobs, "bad", codecs.TypeTaskCompleted, &codecs.TaskCompleted{Step: "s1", Round: 1, Outcome: codecs.Failed, Reason: "no"})
	d.Send(codecs.TopicJobs, "good", codecs.TypeTaskCompleted, &codecs.TaskCompleted{Step: "s1", Round: 1, Outcome: codecs.OK})
	d.Await(codecs.TypeStepStarted, "good", 2)
	d.Send(codecs.TopicJobs, "good", codecs.TypeSplitProposed, &codecs.SplitProposed{Step: "s2", Round: 1, Proposal: "p", Total: 3,
		Chunks: []*codecs.ChunkPosition{{}}})
	run := d.Await(codecs.TypeBatchStarted, "good.s2", 1).Data.(*codecs.BatchEvent).Run
	for i := range uint32(3) {
		report := &codecs.BatchReport{Run: run, Round: 1, Items: []*codecs.ReportItem{codecs.NewItem(i, i, codecs.OK)}}
		d.Send(codecs.TopicControl, "good.s2", codecs.TypeBatchReport, report)
		d.Send(codecs.TopicControl, "good.s2", codecs.TypeBatchReport, report)
	}
	foreign := d.Record(codecs.TopicEvents, "elsewhere", codecs.TypeJobStarted, &codecs.JobEvent{Job: "elsewhere", Type: "foreign"})
	d.Put(1-codecs.Partition(foreign.Key, deploytest.Partitions), foreign) // not on the partition of its key
	d.Await(codecs.TypeJobCompleted, "good", 1)
	d.Await(codecs.TypeJobFailed, "bad", 1)
	d.Settled()
}

// The tables of all roles are what their logs make, live and from a recording; another log makes others.
func TestEveryRole(t *testing.T) {
	d := deploytest.New(t)
	d.Run(machines(t)...)
	runJobs(d)
	client := []kgo.Opt{kgo.SeedBrokers(d.Bootstrap...)}
	for _, m := range machines(t) {
		t.Run(m.Role(), func(t *testing.T) {
			report, err := replay.Diff(t.Context(), replay.DiffConfig{Client: client, Prefix: d.Prefix, Machine: m})
			require.NoError(t, err)
			require.True(t, report.OK(), report.Text())
			require.Positive(t, report.Same)
			require.Empty(t, report.Unchecked, report.Text())

			live, err := replay.OpenLive(t.Context(), replay.LiveConfig{Client: client, Topic: d.Topic(m.Input())})
			require.NoError(t, err)
			all, expected := recorded(t, live)
			state := fold(t, m, d.Prefix, all)
			require.Zero(t, state.Moved, "records are where their machine takes them")
			require.Zero(t, state.Dead)
			require.Equal(t, report.Same, len(state.Rows()))
			var rows bytes.Buffer
			require.NoError(t, state.Print(&rows))
			differences, err := fold(t, m, d.Prefix, all).Compare(&rows)
			require.NoError(t, err)
			require.Empty(t, differences)

			require.NoError(t, state.Print(&rows))
			lines := strings.SplitAfter(expected, "\n")
			short := write(t, strings.Join(lines[:len(lines)-2], "")) // without the last record
			differences, err = fold(t, m, d.Prefix, short).Compare(&rows)
			require.NoError(t, err)
			require.NotEmpty(t, differences)
		})
	}
}

// A log sent into another deployment makes rows of the same numbers there.
func TestIntoEveryRole(t *testing.T) {
	d := deploytest.New(t)
	d.Run(machines(t)...)
	runJobs(d)
	for _, m := range []processors.Machine{stats.New(), machines(t)[1]} {
		t.Run(m.Role(), func(t *testing.T) {
			other := deploytest.New(t)
			client := []kgo.Opt{kgo.SeedBrokers(d.Bootstrap...)}
			if strings.Join(d.Bootstrap, ",") != strings.Join(other.Bootstrap, ",") {
				client = []kgo.Opt{kgo.SeedBrokers(other.Bootstrap...)}
			}
			live, err := replay.OpenLive(t.Context(), replay.LiveConfig{Client: []kgo.Opt{kgo.SeedBrokers(d.Bootstrap...)}, Topic: d.Topic(m.Input())})
			require.NoError(t, err)
			n, err := replay.Into(t.Context(), replay.IntoConfig{Source: live, Client: client, Topic: other.Topic(m.Input()), Local: processors.IsLocal(m)})
			require.NoError(t, err)
			require.Equal(t, live.Len(), n.Sent+n.Nudges)
			other.Run(m)
			other.Settled()
			report, err := replay.Diff(t.Context(), replay.DiffConfig{Client: client, Prefix: other.Prefix, Machine: m})
			require.NoError(t, err)
			require.True(t, report.OK(), report.Text())
			require.Equal(t, len(fold(t, m, d.Prefix, live).Rows()), report.Same)
		})
	}
}

func fold(t *testing.T, m processors.Machine, prefix string, src replay.Source) *replay.State {
	s, err := replay.Fold(t.Context(), replay.FoldConfig{Machine: m, Source: src, Prefix: prefix})
	require.NoError(t, err)
	return s
}

// recorded is a recording of a source, and its text.
func recorded(t *testing.T, src replay.Source) (*replay.File, string) {
	var b bytes.Buffer
	_, err := replay.Record(context.Background(), src, &b, nil)
	require.NoError(t, err)
	return write(t, b.String()), b.String()
}

func write(t *testing.T, text string) *replay.File {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	f, err := replay.OpenFile(path)
	require.NoError(t, err)
	return f
}
