package invoices

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/tail"
	"github.com/quiesce/quiesce/processors/worker"
)

// Summary is the result of s3.
type Summary struct {
	Customers int   `json:"customers"`
	Invoices  int   `json:"invoices"`
	Orders    int   `json:"orders"`
	Cents     Cents `json:"cents"`
	Failed    int   `json:"failed"`
	Rejected  int   `json:"rejected"`
}

// account manager's report, before it is written.
type report struct {
	job      string
	Summary  Summary
	receipts []*receipt // by customer
	failures []Failure  // by customer
}

// report is the handler of s3: what was invoiced, from the receipts, and who has no invoice, from the outcomes.
func (w *work) report(ctx context.Context, t *worker.Task) (worker.Result, error) {
	in, err := readInput(t)
	if err != nil {
		return worker.Result{}, err
	}
	prepared, batch := &Prepared{}, in.Steps[StepRender]
	if err := json.Unmarshal(in.Steps[StepPrepare].Result.JSON, prepared); err != nil {
		return worker.Result{}, worker.Fail(fmt.Errorf("result of %s: %w", StepPrepare, err))
	}
	failed := batch.Counts.Failed + batch.Counts.TimedOut + batch.Counts.Lost
	outcomes, err := tail.Failures(ctx, w.topic, batch.Batch, "", int(failed))
	if err != nil {
		return worker.Result{}, err
	}
	folder := JobFolder(w.cfg.Out, t.Job)
	customers, err := folder.readCustomers()
	if err != nil {
		return worker.Result{}, err
	}
	r := &report{job: t.Job, Summary: Summary{Customers: len(customers), Rejected: prepared.Rejected}}
	if err := r.collect(folder, customers, outcomes); err != nil {
		return worker.Result{}, err
	}
	if r.Summary.Invoices < int(batch.Counts.OK) {
		return worker.Result{}, fmt.Errorf("%d sub-jobs are done, and there are %d receipts: do the workers share their folder?",
			batch.Counts.OK, r.Summary.Invoices)
	}
	if err := folder.writeReport(r); err != nil {
		return worker.Result{}, fmt.Errorf("report: %w", err)
	}
	return result(r.Summary, folder.Report())
}

// collect gives every customer its receipt or its failure.
func (r *report) collect(folder Folder, customers []string, outcomes map[uint32]*codecs.TaskOutcome) error {
	reasons, nameless := map[string]string{}, []string{}
	for _, o := range outcomes {
		if f, ok := failureOf(o.Reason); ok {
			reasons[f.Customer] = f.Reason
		} else {
			nameless = append(nameless, fmt.Sprintf("sub-job %d %s: %s", o.Index, o.Outcome, o.Reason))
		}
	}
	slices.Sort(nameless)
	slices.Sort(customers)
	for _, id := range customers {
		why, broken := reasons[id]
		if !broken {
			got, err := folder.readReceipt(id)
			if err != nil {
				return err
			}
			if got != nil {
				r.receipts = append(r.receipts, got)
				r.Summary.Invoices++
				r.Summary.Orders += got.Orders
				r.Summary.Cents += got.Cents
				continue
			}
			why = "no receipt; " + strings.Join(nameless, "; ")
		}
		r.failures = append(r.failures, Failure{id, why})
	}
	r.Summary.Failed = len(r.failures)
	return nil
}

// readCustomers returns the ids of the customers that s1 has found.
func (f Folder) readCustomers() ([]string, error) {
	file, err := os.Open(f.customers())
	if err != nil {
		return nil, fmt.Errorf("customers: %w", err)
	}
	defer file.Close()
	var ids []string
	for dec := json.NewDecoder(bufio.NewReader(file)); dec.More(); {
		var c struct {
			ID string `json:"id"`
		}
		if err := dec.Decode(&c); err != nil {
			return nil, fmt.Errorf("customers: %w", err)
		}
		ids = append(ids, c.ID)
	}
	return ids, nil
}
