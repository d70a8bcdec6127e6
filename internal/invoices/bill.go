package invoices

import (
	"errors"
	"fmt"
	"net/mail"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Bounds of what an invoice can say.
const (
	maxQuantity = 100_000
	maxTotal    = Cents(1e14)
)

// Bill is what stands on an invoice.
type Bill struct {
	Number   string // <job>/<customer>
	Customer string
	Name     string
	Mail     string
	Date     time.Time // of the latest order
	Lines    []Line
	Total    Cents
}

// Line is one order on an invoice.
type Line struct {
	Order, Item string
	Date        time.Time
	Quantity    int
	Price, Sum  Cents
}

// newBill checks a customer and adds up its orders. The error is the first thing that is wrong.
func newBill(job string, c *Customer) (*Bill, error) {
	b := &Bill{Number: job + "/" + c.ID, Customer: c.ID, Name: c.Name}
	if len(c.Orders) == 0 {
		return nil, errors.New("no orders")
	}
	b.Mail = c.Orders[0].Mail
	if b.Mail == "" {
		return nil, errors.New("no mail address")
	}
	if !usable(b.Mail) {
		return nil, fmt.Errorf("mail address %q cannot be used", b.Mail)
	}
	for _, o := range c.Orders {
		l, err := newLine(b.Mail, o)
		if err != nil {
			return nil, fmt.Errorf("order %s: %w", o.Order, err)
		}
		if l.Date.After(b.Date) {
			b.Date = l.Date
		}
		b.Lines = append(b.Lines, l)
		b.Total += l.Sum
		if b.Total > maxTotal {
			return nil, fmt.Errorf("order %s: total beyond %s", o.Order, maxTotal)
		}
	}
	return b, nil
}

// usable says whether an address is one, alone and in ASCII: others need a mail server with extensions.
func usable(address string) bool {
	a, err := mail.ParseAddress(address)
	return err == nil && a.Address == address && strings.IndexFunc(address, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}

func newLine(address string, o Order) (l Line, err error) {
	l = Line{Order: o.Order, Item: o.Item}
	if o.Mail != address {
		return l, fmt.Errorf("another mail address than in the first row, %q", o.Mail)
	}
	if l.Date, err = time.Parse(time.DateOnly, o.Date); err != nil {
		return l, fmt.Errorf("date %q is not a day such as 2026-11-30", o.Date)
	}
	if l.Quantity, err = strconv.Atoi(o.Quantity); err != nil || l.Quantity < 1 || l.Quantity > maxQuantity {
		return l, fmt.Errorf("quantity %q is not a number from 1 to %d", o.Quantity, maxQuantity)
	}
	if l.Price, err = parseCents(o.Price); err != nil {
		return l, err
	}
	if l.Price < 0 {
		return l, fmt.Errorf("negative amount %s", o.Price)
	}
	l.Sum = l.Price * Cents(l.Quantity)
	return l, nil
}
