package invoices

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quiesce/quiesce/codecs"
)

// columns of a file of orders; its first line names them, in any order, others beside them are not read.
var columns = []string{"customer", "name", "mail", "order", "date", "item", "quantity", "price"}

// Order is one row of a customer, as it is in the file: what is wrong with it is found when the invoice is made.
type Order struct {
	Order    string `json:"order"`
	Date     string `json:"date"` // 2006-01-02
	Item     string `json:"item"`
	Quantity string `json:"quantity"`
	Price    string `json:"price"` // of one
	Mail     string `json:"mail,omitempty"`
}

// Customer is what one sub-job gets. Name is that of the first row.
type Customer struct {
	ID     string  `json:"id"`
	Name   string  `json:"name"`
	Orders []Order `json:"orders"`
}

// Rejected is a row that belongs to no customer.
type Rejected struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

// readOrders reads a file of orders and collects the rows of each customer, customers in the order in which they appear.
// A file without the columns is an error; a row that cannot be used is rejected.
func readOrders(r io.Reader) (customers []*Customer, rejected []Rejected, err error) {
	in := csv.NewReader(r)
	at, err := header(in)
	if err != nil {
		return nil, nil, err
	}
	byID := map[string]*Customer{}
	for {
		rec, err := in.Read()
		if errors.Is(err, io.EOF) {
			return customers, rejected, nil
		}
		var fault *csv.ParseError
		if err != nil && !errors.As(err, &fault) {
			return nil, nil, fmt.Errorf("read orders: %w", err)
		}
		if fault != nil {
			rejected = append(rejected, Rejected{fault.Line, fault.Err.Error()})
			continue
		}
		get := func(column string) string { return strings.TrimSpace(rec[at[column]]) }
		id := get("customer")
		if err := codecs.ValidID("customer", id); err != nil {
			line, _ := in.FieldPos(0)
			rejected = append(rejected, Rejected{line, err.Error()})
			continue
		}
		c := byID[id]
		if c == nil {
			c = &Customer{ID: id, Name: get("name")}
			byID[id] = c
			customers = append(customers, c)
		}
		c.Orders = append(c.Orders, Order{Order: get("order"), Date: get("date"), Item: get("item"), Quantity: get("quantity"),
			Price: get("price"), Mail: get("mail")})
	}
}

// header reads the first line and says where each column is.
func header(in *csv.Reader) (map[string]int, error) {
	names, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("header of the orders: %w", err)
	}
	names[0] = strings.TrimPrefix(names[0], "\ufeff") // what some spreadsheets begin a file with
	at := map[string]int{}
	for _, c := range columns {
		i := slices.IndexFunc(names, func(n string) bool { return strings.TrimSpace(n) == c })
		if i < 0 {
			return nil, fmt.Errorf("header of the orders: no column %q; needed are %s", c, strings.Join(columns, ", "))
		}
		at[c] = i
	}
	return at, nil
}
