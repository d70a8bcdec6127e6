package invoices

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/worker"
	"github.com/quiesce/quiesce/topology"
)

// JobTypeFile declares the job.
//
//go:embed invoices.yaml
var JobTypeFile []byte

// JobType returns the declared job.
func JobType() (*topology.JobType, error) { return topology.LoadJobType(JobTypeFile) }

// Names of the steps, and of what works for them: a queue each.
const (
	StepPrepare = "s1"
	StepRender  = "s2"
	StepReport  = "s3"

	QueuePrepare = "invoices.prepare"
	QueueSplit   = "invoices.split"
	QueueRender  = "invoices.render"
	QueueReport  = "invoices.report"
)

// Queues of the job, and that of notifications: few partitions and short delays are enough for a demo.
func Queues(partitions int32) []topology.Queue {
	var queues []topology.Queue
	for _, name := range []string{QueuePrepare, QueueSplit, QueueRender, QueueReport, topology.NotifyQueue} {
		q := topology.Queue{Name: name, Partitions: 1, Retries: []time.Duration{time.Second, 4 * time.Second}}
		if name == QueueRender {
			q.Partitions = partitions
		}
		queues = append(queues, q)
	}
	return queues
}

// Request asks for the invoices of a file of orders. The workers of s1 read it under that name.
func Request(orders string, notify ...*codecs.Subscription) *codecs.JobRequested {
	return &codecs.JobRequested{Type: "invoices", Input: &codecs.Payload{Reference: orders, ContentType: "text/csv"}, Notify: notify,
		Labels: map[string]string{"demo": "invoices"}}
}

// stepInput is what the workflow gives to a step.
type stepInput struct {
	Job   string `json:"job"`
	Input struct {
		Reference string `json:"reference"`
	} `json:"input"`
	Steps map[string]struct {
		State  string `json:"state"`
		Batch  string `json:"batch"`
		Result struct {
			JSON      json.RawMessage `json:"json"`
			Reference string          `json:"reference"`
		} `json:"result"`
		Counts struct {
			Total    uint32 `json:"total"`
			OK       uint32 `json:"ok"`
			Failed   uint32 `json:"failed"`
			TimedOut uint32 `json:"timed_out"`
			Lost     uint32 `json:"lost"`
		} `json:"counts"`
	} `json:"steps"`
}

func readInput(t *worker.Task) (*stepInput, error) {
	in := &stepInput{}
	if err := json.Unmarshal(t.Payload.GetData(), in); err != nil {
		return nil, worker.Fail(fmt.Errorf("input of step %s: %w", t.Step, err))
	}
	return in, nil
}

// result is what a step leaves: small, as JSON, and a file.
func result(v any, file string) (worker.Result, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return worker.Result{}, worker.Fail(err)
	}
	return worker.Result{Payload: &codecs.Payload{Data: b, Reference: file, ContentType: codecs.ContentJSON}}, nil
}
