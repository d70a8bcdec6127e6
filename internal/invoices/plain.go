package invoices

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/mail"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/quiesce/quiesce/codecs"
)

// Failure is a customer without an invoice.
type Failure struct {
	Customer string `json:"customer"`
	Reason   string `json:"reason"`
}

// Totals are what the job must find.
type Totals struct {
	Customers int        `json:"customers"`
	Invoices  int        `json:"invoices"`
	Orders    int        `json:"orders"` // that stand on an invoice
	Cents     Cents      `json:"cents"`  // of all invoices
	Rejected  []Rejected `json:"rejected"`
	Failures  []Failure  `json:"failures"` // by customer

	accounts map[string]*account // of the plain loop
}

// account is what the plain loop keeps of a customer.
type account struct {
	mail   string
	orders int
	sum    *big.Rat
	fault  string // the first one
}

// Plain does the sums in one loop over the rows, without a job, and with its own checks: what the distributed run must
// agree with.
func Plain(path string) (*Totals, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("plain loop: %w", err)
	}
	defer f.Close()
	in := csv.NewReader(bufio.NewReader(f))
	head, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("plain loop: %w", err)
	}
	accounts := map[string]*account{}
	t := &Totals{Rejected: []Rejected{}, Failures: []Failure{}, accounts: accounts}
	for {
		rec, err := in.Read()
		var fault *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			t.close()
			return t, nil
		case errors.As(err, &fault):
			t.Rejected = append(t.Rejected, Rejected{fault.Line, fault.Err.Error()})
			continue
		case err != nil:
			return nil, fmt.Errorf("plain loop: %w", err)
		}
		row := map[string]string{}
		for i, name := range head {
			name = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))
			if _, twice := row[name]; !twice {
				row[name] = strings.TrimSpace(rec[i])
			}
		}
		if err := codecs.ValidID("customer", row["customer"]); err != nil {
			line, _ := in.FieldPos(0)
			t.Rejected = append(t.Rejected, Rejected{line, err.Error()})
			continue
		}
		if accounts[row["customer"]] == nil {
			accounts[row["customer"]] = &account{mail: row["mail"], sum: new(big.Rat), fault: mailFault(row["mail"])}
		}
		accounts[row["customer"]].add(row)
	}
}

func mailFault(address string) string {
	if address == "" {
		return "no mail address"
	}
	a, err := mail.ParseAddress(address)
	if err != nil || a.Name != "" || a.Address != address || strings.ContainsFunc(address, func(r rune) bool { return r > 127 }) {
		return fmt.Sprintf("mail address %q cannot be used", address)
	}
	return ""
}

func (a *account) add(row map[string]string) {
	if a.fault != "" {
		return
	}
	a.orders++
	quantity, qerr := strconv.ParseUint(row["quantity"], 10, 32)
	if strings.HasPrefix(row["quantity"], "+") { // Atoi takes a sign
		quantity, qerr = strconv.ParseUint(row["quantity"][1:], 10, 32)
	}
	price, ok := new(big.Rat).SetString(row["price"])
	digits := strings.TrimPrefix(row["price"], "-")
	whole, part, point := strings.Cut(digits, ".")
	numeric := ok && !strings.ContainsAny(digits, "eExXoObBpP/_+-") && whole != "" && len(whole) <= 9 && len(part) <= 2 && point == (part != "")
	_, derr := time.Parse("2006-01-02", row["date"])
	switch {
	case row["mail"] != a.mail:
		a.fault = fmt.Sprintf("another mail address than in the first row, %q", row["mail"])
	case derr != nil:
		a.fault = fmt.Sprintf("date %q is not a day such as 2026-11-30", row["date"])
	case qerr != nil || quantity == 0 || quantity > 100_000:
		a.fault = fmt.Sprintf("quantity %q is not a number from 1 to 100000", row["quantity"])
	case !numeric:
		a.fault = fmt.Sprintf("amount %q is not a number such as 12.50", row["price"])
	case price.Sign() < 0:
		a.fault = "negative amount " + row["price"]
	default:
		a.sum.Add(a.sum, price.Mul(price, new(big.Rat).SetUint64(quantity)))
		if a.sum.Cmp(big.NewRat(1e12, 1)) > 0 {
			a.fault = "total beyond 1000000000000.00"
		}
	}
	if a.fault != "" {
		a.fault = "order " + row["order"] + ": " + a.fault
	}
}

// close adds the customers up.
func (t *Totals) close() {
	sum := new(big.Rat)
	for id, a := range t.accounts {
		t.Customers++
		if a.fault != "" {
			t.Failures = append(t.Failures, Failure{id, a.fault})
			continue
		}
		t.Invoices++
		t.Orders += a.orders
		sum.Add(sum, a.sum)
	}
	t.Cents = cents(sum)
	sortFailures(t.Failures)
	sort.Slice(t.Rejected, func(i, j int) bool { return t.Rejected[i].Line < t.Rejected[j].Line })
}

// without takes the invoices of customers out, if the plain loop has them.
func (t *Totals) without(customers []Failure) {
	for _, f := range customers {
		if a := t.accounts[f.Customer]; a != nil && a.fault == "" {
			t.Invoices--
			t.Orders -= a.orders
			t.Cents -= cents(a.sum)
		}
	}
}

// cents of a sum that has no smaller parts.
func cents(r *big.Rat) Cents { return Cents(new(big.Rat).Mul(r, big.NewRat(100, 1)).Num().Int64()) }

func sortFailures(f []Failure) {
	slices.SortFunc(f, func(a, b Failure) int { return strings.Compare(a.Customer, b.Customer) })
}
