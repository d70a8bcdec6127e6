package invoices

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/quiesce/quiesce/processors/stats"
)

// Result of a run.
type Result struct {
	Job         string          `json:"job"`
	State       string          `json:"state"`
	Reason      string          `json:"reason,omitempty"`
	Orders      string          `json:"orders"` // file
	Folder      Folder          `json:"folder"`
	Wall        time.Duration   `json:"wall_ns"` // request to the end of the job
	Totals      *Totals         `json:"totals"`  // that the report names
	Plain       *Totals         `json:"-"`       // of the plain loop
	Stats       *stats.Snapshot `json:"statistics"`
	Mails       int             `json:"mails"`        // distinct, that the sink took
	MailsAgain  int             `json:"mails_again"`  // repeats of them
	Refused     int             `json:"refused"`      // that the sink asked to send again
	Notes       map[string]int  `json:"notes"`        // distinct notifications by type of event
	NotesAgain  int             `json:"notes_again"`  // repeats of them
	Differences []string        `json:"differences"`  // between the job and the plain loop; none is right
	Manager     string          `json:"manager_mail"` // who was told the end by mail
}

// check compares what the job has left with the plain loop. A job that has not come to its report has no totals.
func (r *Result) check(e *Evidence, cfg Config) error {
	r.Stats, r.Mails, r.Manager, r.Notes = e.Stats, len(e.Mails), cfg.Manager, map[string]int{}
	for _, n := range e.Notes {
		r.Notes[n.Type]++
	}
	r.MailsAgain, r.NotesAgain = e.Repeats()
	if !r.Reported() {
		return nil
	}
	var err error
	if r.Differences, err = e.Differences(r.Plain); err != nil {
		return err
	}
	if e.Mails != nil && cfg.Manager != "" {
		if n := managers(e.Mails, cfg.Manager); n != 1 {
			r.Differences = append(r.Differences, fmt.Sprintf("%d mails to the manager with an id of their own; 1 is right", n))
		}
	}
	r.Totals, err = ReadReport(e.Folder)
	return err
}

// Reported says whether the job came to its report.
func (r *Result) Reported() bool { return strings.HasPrefix(r.State, "completed") }

// maxListed bounds the failures that are printed.
const maxListed = 10

// Print says in words what came out.
func (r *Result) Print(w io.Writer) {
	fmt.Fprintf(w, "\njob %s: %s\n", r.Job, strings.ReplaceAll(r.State, "_", " "))
	if r.Reason != "" {
		fmt.Fprintf(w, "  because of %s\n", r.Reason)
	}
	if t := r.Totals; t != nil {
		fmt.Fprintf(w, "  %d customers, %d invoices over %s for %d orders, %d customers without an invoice, %d rows rejected\n",
			t.Customers, t.Invoices, t.Cents, t.Orders, len(t.Failures), len(t.Rejected))
		for i, f := range t.Failures {
			if i == maxListed {
				fmt.Fprintf(w, "  ... and %d more\n", len(t.Failures)-i)
				break
			}
			fmt.Fprintf(w, "  no invoice for %s: %s\n", f.Customer, f.Reason)
		}
	}
	if s := r.Stats; s != nil {
		fmt.Fprintf(w, "statistics of the sub-jobs: %d ok, %d failed, %d attempts, %.0f a second, %.1f worker-seconds\n", s.Tasks.OK, s.Tasks.Failed,
			s.Tasks.Attempts, s.Throughput, s.WorkerSeconds)
		printTimes(w, "run", s.Run)
		printTimes(w, "wait in the queue", s.QueueWait)
	}
	r.printTold(w)
	fmt.Fprintf(w, "took %s from the request to the end of the job\n", r.Wall.Round(time.Millisecond))
	if !r.Reported() {
		fmt.Fprintln(w, "check: there is no report to compare")
		return
	}
	if len(r.Differences) == 0 {
		fmt.Fprintln(w, "check: totals, failures and reasons, invoices, mails, notifications and statistics equal what a plain loop over the same orders says")
		return
	}
	fmt.Fprintln(w, "check FAILED: this differs from a plain loop over the same orders:")
	for i, d := range r.Differences {
		if i == 2*maxListed {
			fmt.Fprintf(w, "  ... and %d more\n", len(r.Differences)-i)
			break
		}
		fmt.Fprintln(w, "  "+d)
	}
}

func printTimes(w io.Writer, what string, t *stats.Times) {
	if t != nil {
		fmt.Fprintf(w, "  %s: p50 %.1f ms, p99 %.1f ms, max %.1f ms\n", what, t.P50, t.P99, t.Max)
	}
}

func (r *Result) printTold(w io.Writer) {
	if r.Mails > 0 {
		fmt.Fprintf(w, "mail: %d messages, %d of them sent again because the server was busy, %d taken twice\n", r.Mails, r.Refused, r.MailsAgain)
	}
	n := 0
	for _, c := range r.Notes {
		n += c
	}
	fmt.Fprintf(w, "notifications: %d by webhook, each with an id of its own, %d came twice", n, r.NotesAgain)
	if r.Manager != "" {
		fmt.Fprintf(w, "; the end by mail to %s", r.Manager)
	}
	fmt.Fprintln(w)
}
