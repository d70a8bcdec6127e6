package invoices

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/quiesce/quiesce/internal/notify"
	"github.com/quiesce/quiesce/processors/worker"
)

// render is the handler of the sub-jobs: invoice, mail, receipt.
func (w *work) render(ctx context.Context, t *worker.Task) (worker.Result, error) {
	c := &Customer{}
	if err := json.Unmarshal(t.Payload.GetData(), c); err != nil {
		return worker.Result{}, worker.Fail(fmt.Errorf("customer: %w", err))
	}
	if err := w.serve(ctx, t.Job, c); err != nil {
		return worker.Result{}, fmt.Errorf("%s%s%s%w", reasonPrefix, c.ID, reasonSeparator, err)
	}
	return worker.Result{}, nil
}

// serve gives a customer its invoice, unless it has it.
func (w *work) serve(ctx context.Context, job string, c *Customer) error {
	folder := JobFolder(w.cfg.Out, job)
	b, err := newBill(job, c)
	if err != nil {
		return worker.Fail(err)
	}
	had, err := folder.readReceipt(c.ID)
	if err != nil || had != nil {
		return err
	}
	file := folder.Invoice(c.ID)
	if err := write(file, func(w *bufio.Writer) error { return renderPDF(w, b) }); err != nil {
		return err
	}
	if err := send(ctx, w.cfg.SMTP, job, b, file); err != nil {
		err = fmt.Errorf("%s%w", mailPrefix, err)
		if !notify.Retryable(err) {
			return worker.Fail(err)
		}
		return err
	}
	if err := w.fault.after(); err != nil {
		return err
	}
	return writeJSON(folder.receipt(c.ID), receipt{Customer: c.ID, Number: b.Number, Orders: len(b.Lines), Cents: b.Total})
}

// A failed sub-job says: customer ID: reason.
const (
	reasonPrefix    = "customer "
	reasonSeparator = ": "
	mailPrefix      = "mail: " // of reasons that the mail server has given
)

// failureOf reads the reason of a failed sub-job; false when it does not name its customer, as when the worker died.
func failureOf(reason string) (Failure, bool) {
	rest, ok := strings.CutPrefix(reason, reasonPrefix)
	id, why, cut := strings.Cut(rest, reasonSeparator)
	return Failure{Customer: id, Reason: why}, ok && cut
}
