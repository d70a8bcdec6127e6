package invoices

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Folder is where a job leaves its files; every worker of the job sees the same one.
//
//	customers.jsonl     what s1 made of the orders, a customer a line
//	rejected.csv        rows that belong to no customer
//	invoices/ID.pdf     of each customer
//	receipts/ID.json    written when the invoice was mailed
//	report.md, invoices.csv, failures.csv
type Folder string

// JobFolder is the folder of a job below the folder that workers share.
func JobFolder(shared, job string) Folder { return Folder(filepath.Join(shared, job)) }

func (f Folder) path(parts ...string) string {
	return filepath.Join(append([]string{string(f)}, parts...)...)
}

// Invoice is the file of a customer's invoice.
func (f Folder) Invoice(customer string) string { return f.path("invoices", customer+".pdf") }

func (f Folder) receipt(customer string) string { return f.path("receipts", customer+".json") }

// Report is the file that the account manager reads.
func (f Folder) Report() string { return f.path("report.md") }

// receipt says that a customer has its invoice.
type receipt struct {
	Customer string `json:"customer"`
	Number   string `json:"number"`
	Orders   int    `json:"orders"`
	Cents    Cents  `json:"cents"`
}

// readReceipt returns the receipt of a customer; nil when there is none.
func (f Folder) readReceipt(customer string) (*receipt, error) {
	b, err := os.ReadFile(f.receipt(customer))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("receipt: %w", err)
	}
	r := &receipt{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("receipt of customer %s: %w", customer, err)
	}
	return r, nil
}

// names lists the files of a folder whose names end with the suffix, without it; a folder that is not there has none.
func (f Folder) names(folder, suffix string) ([]string, error) {
	entries, err := os.ReadDir(f.path(folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), suffix); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// write makes a file with what fill writes, or leaves things as they are: nobody ever sees half a file, whoever dies.
func write(name string, fill func(w *bufio.Writer) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".*.part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}()
	w := bufio.NewWriter(f)
	if err := fill(w); err != nil {
		return err
	}
	if err := errors.Join(w.Flush(), f.Chmod(0o644)); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// writeJSON writes one value.
func writeJSON(name string, v any) error {
	return write(name, func(w *bufio.Writer) error { return json.NewEncoder(w).Encode(v) })
}
