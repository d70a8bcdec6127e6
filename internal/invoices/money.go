package invoices

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Cents is an amount of money.
type Cents int64

// String is the amount in decimals: 12.50, -0.05.
func (c Cents) String() string {
	sign := ""
	if c < 0 {
		sign, c = "-", -c
	}
	return fmt.Sprintf("%s%d.%02d", sign, c/100, c%100)
}

var amount = regexp.MustCompile(`^(-?)([0-9]{1,9})(?:\.([0-9]{1,2}))?$`)

// parseCents reads 12, 12.5 or 12.50, with or without a minus; below a thousand millions.
func parseCents(s string) (Cents, error) {
	m := amount.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("amount %q is not a number such as 12.50", s)
	}
	n, err := strconv.ParseInt(m[2]+m[3]+strings.Repeat("0", 2-len(m[3])), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("amount %q: %w", s, err)
	}
	if m[1] != "" {
		n = -n
	}
	return Cents(n), nil
}
