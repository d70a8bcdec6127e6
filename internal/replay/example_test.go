package replay_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/replay"
	"github.com/quiesce/quiesce/processors/job"
)

// A recorded jobs topic gives the rows of the workflow machine, and what it answered.
func ExampleFold() {
	path, err := recordJob()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(filepath.Dir(path)) }()
	file, err := replay.OpenFile(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	machine, err := job.New(job.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var transcript bytes.Buffer
	state, err := replay.Fold(context.Background(), replay.FoldConfig{Machine: machine, Source: file, Transcript: &transcript})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(state.Summary())
	for _, line := range strings.Split(strings.TrimSpace(transcript.String()), "\n") {
		f := strings.Fields(line)
		fmt.Println(f[0], f[1], f[2])
	}
	// Output:
	// records=1 messages=4 rows=1 repeats=0 moved=0 dead=0
	// 0:0 job.requested job-1
	// > events job.requested
	// > events job.started
	// > events step.started
	// > work.invoices.prepare task
}

// recordJob writes a recording of one job request.
func recordJob() (string, error) {
	dir, err := os.MkdirTemp("", "replay")
	if err != nil {
		return "", err
	}
	file, err := os.Create(filepath.Join(dir, "jobs.jsonl"))
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	w, err := codecs.NewRecordWriter(file, codecs.RecordedTopic{Topic: "quiesce.jobs", Partitions: 1})
	if err != nil {
		return "", err
	}
	rec, err := codecs.Encode("quiesce.jobs", "job-1", codecs.Source("quiesce", "example"), &codecs.Event{
		Type: codecs.TypeJobRequested, ID: "request-1", Data: &codecs.JobRequested{
			Type: "invoices", Version: 1, Definition: &codecs.JobType{Name: "invoices", Version: 1, Steps: []*codecs.StepSpec{
				{Name: "s1", Task: &codecs.TaskSpec{Queue: "invoices.prepare"}},
			}},
		},
	})
	if err != nil {
		return "", err
	}
	rec.Partition = 0
	if err := w.Write(&rec); err != nil {
		return "", err
	}
	return file.Name(), w.Flush()
}
