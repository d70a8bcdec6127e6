package invoices

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"time"
)

// Seed says which orders to make up. The same seed gives the same file.
type Seed struct {
	// Customers to make up. Default 10,000.
	Customers int
	// Orders of a customer at most; each has at least one. Default 7.
	Orders int
	// Broken is the share of customers that are wrong on purpose; 0 = none.
	Broken float64
	// Number of the random generator. Default 1.
	Number uint64
}

// WithDefaults fills in the documented defaults.
func (s Seed) WithDefaults() Seed {
	if s.Customers == 0 {
		s.Customers = 10_000
	}
	if s.Orders == 0 {
		s.Orders = 7
	}
	if s.Number == 0 {
		s.Number = 1
	}
	return s
}

// Validate reports numbers that cannot be.
func (s Seed) Validate() error {
	switch {
	case s.Customers < 0 || s.Customers > 1_000_000:
		return fmt.Errorf("%d customers: from 1 to 1,000,000", s.Customers)
	case s.Orders < 0 || s.Orders > 1000:
		return fmt.Errorf("%d orders a customer: from 1 to 1,000", s.Orders)
	case s.Broken < 0 || s.Broken > 1:
		return fmt.Errorf("a share of %g broken customers: from 0 to 1", s.Broken)
	}
	return nil
}

// breaks are the ways in which a customer is broken, each in one of its orders.
var breaks = []func(o *Order, all []Order){
	func(_ *Order, all []Order) { everywhere(all, "") },
	func(_ *Order, all []Order) { everywhere(all, "somebody at example.com") },
	func(o *Order, _ []Order) { o.Price = "-" + o.Price },
	func(o *Order, _ []Order) { o.Date = "2026-02-30" },
	func(o *Order, _ []Order) { o.Quantity = "0" },
	func(o *Order, _ []Order) { o.Price = "twelve" },
	func(o *Order, all []Order) {
		if len(all) == 1 {
			o.Date = "soon"
			return
		}
		all[len(all)-1].Mail = "other-" + all[0].Mail
	},
}

func everywhere(all []Order, mail string) {
	for i := range all {
		all[i].Mail = mail
	}
}

var (
	first = []string{"Ada", "Grace", "Edsger", "Barbara", "Donald", "Frances", "Tony", "Adele", "Niklaus", "José", "Zoë", "Søren"}
	last  = []string{"Lovelace", "Hopper", "Dijkstra", "Liskov", "Knuth", "Allen", "Hoare", "Goldberg", "Wirth", "Müller", "Nuñez", "Kjær"}
	items = []string{"paper, 500 sheets", "toner", "desk lamp", "chair", "whiteboard", "markers, box of 12", "monitor arm", "cable, 2 m", "notebook", "stapler"}
)

// WriteOrders makes orders up and writes them as a file of orders. Rows of different customers are mixed, as in a file that
// grew over a month.
func WriteOrders(w io.Writer, s Seed) error {
	s = s.WithDefaults()
	if err := s.Validate(); err != nil {
		return fmt.Errorf("orders: %w", err)
	}
	rng := rand.New(rand.NewPCG(s.Number, 0))
	var rows [][]string
	broken := rng.Perm(s.Customers)[:int(float64(s.Customers)*s.Broken+0.5)]
	kind := map[int]int{}
	for i, c := range broken {
		kind[c] = i%len(breaks) + 1
	}
	for c := range s.Customers {
		id := fmt.Sprintf("c-%05d", c+1)
		name := first[rng.IntN(len(first))] + " " + last[rng.IntN(len(last))]
		orders := makeOrders(rng, id, 1+rng.IntN(s.Orders))
		if k := kind[c]; k > 0 {
			breaks[k-1](&orders[rng.IntN(len(orders))], orders)
		}
		for _, o := range orders {
			rows = append(rows, []string{id, name, o.Mail, o.Order, o.Date, o.Item, o.Quantity, o.Price})
		}
	}
	rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	out := bufio.NewWriter(w)
	enc := csv.NewWriter(out)
	if err := enc.Write(columns); err != nil {
		return fmt.Errorf("orders: %w", err)
	}
	if err := errors.Join(enc.WriteAll(rows), out.Flush()); err != nil {
		return fmt.Errorf("orders: %w", err)
	}
	return nil
}

func makeOrders(rng *rand.Rand, customer string, n int) []Order {
	month := time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)
	orders := make([]Order, n)
	for i := range orders {
		orders[i] = Order{
			Order: fmt.Sprintf("%s-%d", customer[2:], i+1), Date: month.AddDate(0, 0, rng.IntN(30)).Format(time.DateOnly),
			Item: items[rng.IntN(len(items))], Quantity: strconv.Itoa(1 + rng.IntN(20)), Price: Cents(50 + rng.IntN(50_000)).String(),
			Mail: customer + "@example.com",
		}
	}
	return orders
}
