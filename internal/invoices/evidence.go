package invoices

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/tail"
	"github.com/quiesce/quiesce/processors/stats"
)

// Evidence is everything that a job leaves, seen from outside.
type Evidence struct {
	Job    *api.Job
	Folder Folder
	Mails  map[string]Mail // that the sink took; nil = somebody else's mail server
	Notes  map[string]Note // that the receiver of webhooks got, of job.* and step.*
	Events map[string]string
	Stats  *stats.Snapshot // of the sub-jobs
}

// JobEvents reads the events log until the job has ended and returns type by id of what it tells about the job: what a
// subscriber of job.* and step.* must get.
func JobEvents(ctx context.Context, log tail.Config, job string) (map[string]string, error) {
	ids := map[string]string{}
	err := tail.Follow(ctx, log, codecs.TopicEvents, func(ev *codecs.Event) (bool, error) {
		if ev.Key == job && (strings.HasPrefix(ev.Type, "job.") || strings.HasPrefix(ev.Type, "step.")) {
			ids[ev.ID] = ev.Type
		}
		return ev.Key == job && strings.HasSuffix(ev.ID, "/terminal"), nil
	})
	return ids, err
}

// Differences compares with what a plain loop has found; it empties out of want what the mail server refused. Repeats of
// mails and notifications are none, as long as they have one id.
func (e *Evidence) Differences(want *Totals) ([]string, error) {
	got, err := ReadReport(e.Folder)
	if err != nil {
		return nil, err
	}
	var refused []Failure
	if e.Mails == nil { // the sink of the demo refuses nobody for good
		refused = got.refused()
		want.without(refused)
		got.Customers += len(refused)
	}
	out := append(got.Differences(want), e.counts(got, len(refused))...)
	skip := map[string]bool{}
	for _, f := range refused {
		skip[f.Customer] = true
	}
	pdfs, err := e.pdfs(want, skip)
	if err != nil {
		return nil, err
	}
	return append(append(append(out, pdfs...), e.mails(want)...), e.notes()...), nil
}

// counts compares the numbers that the job, its last step and the statistics say.
func (e *Evidence) counts(t *Totals, refused int) []string {
	var out []string
	number := func(what string, got, want any) {
		if got != want {
			out = append(out, fmt.Sprintf("%s: %v, the report has %v", what, got, want))
		}
	}
	failed := len(t.Failures) + refused
	for _, s := range e.Job.Steps {
		switch {
		case s.Step == StepRender && s.Counts != nil:
			number("sub-jobs ok", int(s.Counts.OK), t.Invoices)
			number("sub-jobs failed", int(s.Counts.Failed+s.Counts.TimedOut+s.Counts.Lost), failed)
			number("sub-jobs", int(s.Counts.Total), t.Customers)
		case s.Step == StepReport:
			x := &Summary{}
			if s.Result == nil || json.Unmarshal(s.Result.JSON, x) != nil {
				out = append(out, "the last step has no result")
				continue
			}
			number("result of the last step", *x, Summary{Customers: t.Customers, Invoices: t.Invoices, Orders: t.Orders, Cents: t.Cents,
				Failed: failed, Rejected: len(t.Rejected)})
		}
	}
	if e.Stats != nil {
		number("statistics: tasks ok", int(e.Stats.Tasks.OK), t.Invoices)
		number("statistics: tasks failed", int(e.Stats.Tasks.Failed+e.Stats.Tasks.TimedOut+e.Stats.Tasks.Lost), failed)
	}
	return out
}

// pdfs looks whether every customer has a whole invoice, and nobody else.
func (e *Evidence) pdfs(want *Totals, skip map[string]bool) ([]string, error) {
	names, err := e.Folder.names("invoices", ".pdf")
	if err != nil {
		return nil, err
	}
	var out []string
	have := map[string]bool{}
	for _, id := range names {
		have[id] = true
		if a := want.accounts[id]; a == nil || a.fault != "" {
			out = append(out, fmt.Sprintf("an invoice for customer %s", id))
			continue
		}
		b, err := os.ReadFile(e.Folder.Invoice(id))
		if err != nil {
			return nil, err
		}
		if !bytes.HasPrefix(b, []byte("%PDF-")) || !bytes.HasSuffix(bytes.TrimSpace(b), []byte("%%EOF")) {
			out = append(out, fmt.Sprintf("the invoice of customer %s is not a whole PDF", id))
		}
	}
	for id, a := range want.accounts {
		if a.fault == "" && !have[id] && !skip[id] {
			out = append(out, fmt.Sprintf("no invoice for customer %s", id))
		}
	}
	return out, nil
}

// mails looks whether every customer got its mail, and nobody else.
func (e *Evidence) mails(want *Totals) []string {
	if e.Mails == nil {
		return nil
	}
	var out []string
	known := map[string]bool{}
	for id, a := range want.accounts {
		if a.fault != "" {
			continue
		}
		m := MessageID(e.Job.Job, id)
		known[m] = true
		if got := e.Mails[m]; got.To != a.mail {
			out = append(out, fmt.Sprintf("mail to customer %s: sent to %q", id, got.To))
		}
	}
	for id, m := range e.Mails {
		if strings.HasPrefix(id, "invoice.") && !known[id] {
			out = append(out, fmt.Sprintf("a mail to %s that nobody should get", m.To))
		}
	}
	return out
}

// notes looks whether each event was told, under its id.
func (e *Evidence) notes() []string {
	var out []string
	for id, kind := range e.Events {
		if got := e.Notes[id]; got.Type != kind {
			out = append(out, fmt.Sprintf("event %s %s was not told", kind, id))
		}
	}
	for id, n := range e.Notes {
		if _, ok := e.Events[id]; !ok {
			out = append(out, fmt.Sprintf("told %s %s, which the events log does not have", n.Type, id))
		}
	}
	return out
}

// Repeats counts what came more than once under one id.
func (e *Evidence) Repeats() (mails, notes int) {
	for _, m := range e.Mails {
		mails += m.Count - 1
	}
	for _, n := range e.Notes {
		notes += n.Count - 1
	}
	return mails, notes
}
