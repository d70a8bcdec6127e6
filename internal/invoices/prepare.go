package invoices

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/quiesce/quiesce/processors/worker"
)

// Prepared is the result of s1.
type Prepared struct {
	Customers int `json:"customers"`
	Orders    int `json:"orders"`
	Rejected  int `json:"rejected"` // rows
}

// prepare is the handler of s1: it reads the orders and leaves a line for each customer.
func (w *work) prepare(_ context.Context, t *worker.Task) (worker.Result, error) {
	in, err := readInput(t)
	if err != nil {
		return worker.Result{}, err
	}
	f, err := os.Open(in.Input.Reference)
	if err != nil {
		return worker.Result{}, worker.Fail(fmt.Errorf("orders: %w", err))
	}
	defer f.Close()
	customers, rejected, err := readOrders(bufio.NewReader(f))
	if err != nil {
		return worker.Result{}, worker.Fail(err)
	}
	folder := JobFolder(w.cfg.Out, t.Job)
	p := Prepared{Customers: len(customers), Rejected: len(rejected)}
	for _, c := range customers {
		p.Orders += len(c.Orders)
	}
	err = errors.Join(folder.writeCustomers(customers), folder.writeRejected(rejected))
	if err != nil {
		return worker.Result{}, fmt.Errorf("prepare: %w", err)
	}
	return result(p, folder.customers())
}

func (f Folder) customers() string { return f.path("customers.jsonl") }

func (f Folder) writeCustomers(customers []*Customer) error {
	return write(f.customers(), func(w *bufio.Writer) error {
		enc := json.NewEncoder(w)
		for _, c := range customers {
			if err := enc.Encode(c); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f Folder) writeRejected(rejected []Rejected) error {
	rows := [][]string{{"line", "reason"}}
	for _, r := range rejected {
		rows = append(rows, []string{strconv.Itoa(r.Line), r.Reason})
	}
	return writeCSV(f.path("rejected.csv"), rows)
}

func writeCSV(name string, rows [][]string) error {
	return write(name, func(w *bufio.Writer) error { return csv.NewWriter(w).WriteAll(rows) })
}
