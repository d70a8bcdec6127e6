package invoices

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// sums does what the steps do, one after the other.
func sums(t require.TestingT, orders []byte) *Totals {
	customers, rejected, err := readOrders(bytes.NewReader(orders))
	require.NoError(t, err)
	got := &Totals{Customers: len(customers), Rejected: append([]Rejected{}, rejected...), Failures: []Failure{}}
	for _, c := range customers {
		b, err := newBill("j", c)
		if err != nil {
			got.Failures = append(got.Failures, Failure{c.ID, err.Error()})
			continue
		}
		got.Invoices++
		got.Orders += len(b.Lines)
		got.Cents += b.Total
	}
	sortFailures(got.Failures)
	return got
}

func plainOf(t require.TestingT, dir string, orders []byte) *Totals {
	name := filepath.Join(dir, "orders.csv")
	require.NoError(t, os.WriteFile(name, orders, 0o600))
	want, err := Plain(name)
	require.NoError(t, err)
	return want
}

// Whatever stands in the cells: the steps and the plain loop, which share no check, find the same.
func TestStepsAgreeWithThePlainLoop(t *testing.T) {
	dir := t.TempDir()
	cell := map[string][]string{
		"customer": {"a", "a", "b", "b", "c", "", "x y", "ü"},
		"name":     {"Ada", "José", ""},
		"mail":     {"a@example.com", "a@example.com", "b@example.com", "", "nobody", "Ada <a@example.com>", "ä@example.com"},
		"order":    {"1", "2", "3", ""},
		"date":     {"2026-11-01", "2026-11-30", "2026-02-30", "1.11.2026", "", "2026-11-1"},
		"item":     {"paper", "a, b", "\"quoted\"", ""},
		"quantity": {"1", "20", "100000", "100001", "0", "-1", "+2", "two", "", "1e3", "1_000", "99999999999999999999"},
		"price":    {"1", "12.5", "12.50", "0", "-0.00", "-3.00", "999999999.99", "1000000000", "1.", ".5", "12.505", "1e3", "0x10", "1/2", "1_0", "", "+1", "twelve"},
	}
	rapid.Check(t, func(r *rapid.T) {
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		order := rapid.Permutation(columns).Draw(r, "columns")
		require.NoError(r, w.Write(order))
		for range rapid.IntRange(0, 12).Draw(r, "rows") {
			var row []string
			for _, c := range order {
				values := cell[c]
				if rapid.IntRange(0, 3).Draw(r, "odd") > 0 {
					values = values[:min(3, len(values))] // most cells are well, else no row is
				}
				row = append(row, rapid.SampledFrom(values).Draw(r, c))
			}
			if rapid.IntRange(0, 20).Draw(r, "short") == 0 {
				row = row[1:]
			}
			require.NoError(r, w.Write(row))
		}
		w.Flush()
		want := plainOf(r, dir, b.Bytes())
		require.Empty(r, sums(r, b.Bytes()).Differences(want), b.String())
	})
}

func TestDifferencesAreNamed(t *testing.T) {
	want := plainOf(t, t.TempDir(), []byte(small))
	require.Empty(t, sums(t, []byte(small)).Differences(want))
	got := sums(t, []byte(strings.Replace(small, "2.50", "2.51", 1)))
	require.Equal(t, []string{"total: 15.04, the plain loop has 15.00"}, got.Differences(want))
	got = sums(t, []byte(strings.Replace(small, "-1.00", "1.00", 1)))
	require.Contains(t, strings.Join(got.Differences(want), "\n"), "customer c failed in the plain loop (order 5: negative amount -1.00), not here")
	got = sums(t, []byte(strings.Replace(small, "a@example.com", "", 1)))
	require.Contains(t, strings.Join(got.Differences(want), "\n"), "customer a failed (no mail address), not in the plain loop")
}

const small = "\ufeffcustomer,name,mail,order,date,item,quantity,price\r\n" +
	"a,Ada,a@example.com,1,2026-11-02,paper,4,2.50\r\n" +
	"b,Barbara,,2,2026-11-03,toner,1,60\r\n" +
	"a,Ada,a@example.com,3,2026-11-01,\"lamp, small\",1,5.00\r\n" +
	",Nobody,n@example.com,4,2026-11-01,chair,1,1.00\r\n" +
	"c,Grace,c@example.com,5,2026-11-01,chair,1,-1.00\r\n" +
	"too,short\r\n"

func TestSmallFile(t *testing.T) {
	got := sums(t, []byte(small))
	require.Equal(t, &Totals{Customers: 3, Invoices: 1, Orders: 2, Cents: 1500,
		Rejected: []Rejected{{5, `customer id "": 1 to 128 of A-Z a-z 0-9 . _ @ = + -, starting with a letter or digit`}, {7, "wrong number of fields"}},
		Failures: []Failure{{"b", "no mail address"}, {"c", "order 5: negative amount -1.00"}}}, got)
	_, _, err := readOrders(strings.NewReader("customer,name\n"))
	require.ErrorContains(t, err, `no column "mail"`)
	_, _, err = readOrders(strings.NewReader(""))
	require.ErrorContains(t, err, "header")
}

func TestSeededOrders(t *testing.T) {
	seed := Seed{Customers: 500, Broken: 0.05}
	var a, b bytes.Buffer
	require.NoError(t, WriteOrders(&a, seed))
	require.NoError(t, WriteOrders(&b, seed))
	require.Equal(t, a.String(), b.String(), "the same seed, the same file")
	seed.Number = 2
	b.Reset()
	require.NoError(t, WriteOrders(&b, seed))
	require.NotEqual(t, a.String(), b.String())

	got := sums(t, a.Bytes())
	require.Empty(t, got.Differences(plainOf(t, t.TempDir(), a.Bytes())))
	require.Equal(t, 500, got.Customers)
	require.Len(t, got.Failures, 25)
	all := ""
	for _, f := range got.Failures {
		all += f.Reason + "\n"
	}
	for _, reason := range []string{"no mail address", "cannot be used", "negative amount", "is not a day", "quantity", "is not a number such as 12.50", "another mail address"} {
		require.Contains(t, all, reason)
	}
	require.Error(t, WriteOrders(&b, Seed{Customers: -1}))
	require.Error(t, WriteOrders(&b, Seed{Broken: 2}))
}
