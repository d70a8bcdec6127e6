package invoices

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// maxShown bounds the failures on the first page; failures.csv has all.
const maxShown = 50

// writeReport writes the three files.
func (f Folder) writeReport(r *report) error {
	invoices := [][]string{{"customer", "number", "orders", "total"}}
	for _, x := range r.receipts {
		invoices = append(invoices, []string{x.Customer, x.Number, strconv.Itoa(x.Orders), x.Cents.String()})
	}
	failures := [][]string{{"customer", "reason"}}
	for _, x := range r.failures {
		failures = append(failures, []string{x.Customer, x.Reason})
	}
	return errors.Join(writeCSV(f.path("invoices.csv"), invoices), writeCSV(f.path("failures.csv"), failures),
		write(f.Report(), func(w *bufio.Writer) error { r.markdown(w); return nil }))
}

// markdown is what the account manager reads.
func (r *report) markdown(w *bufio.Writer) {
	s := r.Summary
	fmt.Fprintf(w, "# Invoices of job %s\n\n", r.job)
	fmt.Fprintf(w, "| | |\n|---|---:|\n| customers | %d |\n| invoices | %d |\n| orders on them | %d |\n| total | %s |\n", s.Customers, s.Invoices, s.Orders, s.Cents)
	fmt.Fprintf(w, "| customers without an invoice | %d |\n| rows that name no customer | %d |\n", s.Failed, s.Rejected)
	if len(r.failures) > 0 {
		fmt.Fprint(w, "\n## Customers without an invoice\n\n| customer | reason |\n|---|---|\n")
	}
	cell := strings.NewReplacer("|", `\|`, "\n", " ", "\r", " ")
	for i, x := range r.failures {
		if i == maxShown {
			fmt.Fprintf(w, "\nAnd %d more, in failures.csv.\n", len(r.failures)-i)
			break
		}
		fmt.Fprintf(w, "| %s | %s |\n", cell.Replace(x.Customer), cell.Replace(x.Reason))
	}
}

// ReadReport reads what the report of a job says.
func ReadReport(f Folder) (*Totals, error) {
	t := &Totals{Rejected: []Rejected{}, Failures: []Failure{}}
	err := errors.Join(
		readCSV(f.path("invoices.csv"), 4, func(row []string) error {
			n, err := strconv.Atoi(row[2])
			if err != nil {
				return err
			}
			sum, err := strconv.ParseInt(strings.Replace(row[3], ".", "", 1), 10, 64)
			t.Invoices, t.Orders, t.Cents = t.Invoices+1, t.Orders+n, t.Cents+Cents(sum)
			return err
		}),
		readCSV(f.path("failures.csv"), 2, func(row []string) error {
			t.Failures = append(t.Failures, Failure{row[0], row[1]})
			return nil
		}),
		readCSV(f.path("rejected.csv"), 2, func(row []string) error {
			line, err := strconv.Atoi(row[0])
			t.Rejected = append(t.Rejected, Rejected{line, row[1]})
			return err
		}))
	t.Customers = t.Invoices + len(t.Failures)
	sortFailures(t.Failures)
	return t, err
}

// readCSV calls fn for every row but the first.
func readCSV(name string, columns int, fn func(row []string) error) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	defer f.Close()
	in := csv.NewReader(bufio.NewReader(f))
	in.FieldsPerRecord = columns
	rows, err := in.ReadAll()
	for i := 1; i < len(rows) && err == nil; i++ {
		err = fn(rows[i])
	}
	if err != nil {
		return fmt.Errorf("report: %s: %w", name, err)
	}
	return nil
}
