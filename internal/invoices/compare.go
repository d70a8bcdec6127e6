package invoices

import (
	"fmt"
	"strings"
)

// Differences says in words where two totals disagree; nothing when they agree.
func (t *Totals) Differences(want *Totals) []string {
	var out []string
	number := func(what string, got, want any) {
		if got != want {
			out = append(out, fmt.Sprintf("%s: %v, the plain loop has %v", what, got, want))
		}
	}
	number("customers", t.Customers, want.Customers)
	number("invoices", t.Invoices, want.Invoices)
	number("orders on invoices", t.Orders, want.Orders)
	number("total", t.Cents, want.Cents)
	number("rejected rows", fmt.Sprint(t.Rejected), fmt.Sprint(want.Rejected))
	return append(out, failureDifferences(t.Failures, want.Failures)...)
}

func failureDifferences(got, want []Failure) []string {
	var out []string
	expected := map[string]string{}
	for _, f := range want {
		expected[f.Customer] = f.Reason
	}
	for _, f := range got {
		reason, ok := expected[f.Customer]
		delete(expected, f.Customer)
		switch {
		case !ok:
			out = append(out, fmt.Sprintf("customer %s failed (%s), not in the plain loop", f.Customer, f.Reason))
		case reason != f.Reason:
			out = append(out, fmt.Sprintf("customer %s failed (%s), in the plain loop (%s)", f.Customer, f.Reason, reason))
		}
	}
	for _, f := range want {
		if _, missing := expected[f.Customer]; missing {
			out = append(out, fmt.Sprintf("customer %s failed in the plain loop (%s), not here", f.Customer, f.Reason))
		}
	}
	return out
}

// refused takes the customers whose invoice the mail server did not take out of t, and returns them: a plain loop over
// the orders cannot know.
func (t *Totals) refused() (names []Failure) {
	var rest []Failure
	for _, f := range t.Failures {
		if strings.HasPrefix(f.Reason, mailPrefix) {
			names = append(names, f)
		} else {
			rest = append(rest, f)
		}
	}
	t.Failures = rest
	return names
}
