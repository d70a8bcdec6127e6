package invoices

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var stream = regexp.MustCompile(`(?s)stream\r?\n(.*?)\r?\nendstream`)

// pages returns the drawing commands of a PDF, inflated.
func pages(t *testing.T, b []byte) string {
	var out strings.Builder
	for _, m := range stream.FindAllSubmatch(b, -1) {
		z, err := zlib.NewReader(bytes.NewReader(m[1]))
		require.NoError(t, err)
		_, err = io.Copy(&out, z)
		require.NoError(t, err)
	}
	return out.String()
}

func bill(t *testing.T, orders int) *Bill {
	c := &Customer{ID: "c-1", Name: "José (the third) 李"}
	for i := range orders {
		c.Orders = append(c.Orders, Order{Order: fmt.Sprint(i), Date: fmt.Sprintf("2026-11-%02d", 1+i%30), Item: "paper", Quantity: "2", Price: "1.25", Mail: "c@example.com"})
	}
	b, err := newBill("j", c)
	require.NoError(t, err)
	return b
}

func TestInvoiceIsAPDF(t *testing.T) {
	var a, b bytes.Buffer
	require.NoError(t, renderPDF(&a, bill(t, 3)))
	require.NoError(t, renderPDF(&b, bill(t, 3)))
	require.Equal(t, a.Bytes(), b.Bytes(), "the same bill, the same bytes")
	require.True(t, bytes.HasPrefix(a.Bytes(), []byte("%PDF-1.")))
	require.True(t, bytes.HasSuffix(bytes.TrimSpace(a.Bytes()), []byte("%%EOF")))
	text := pages(t, a.Bytes())
	for _, want := range []string{"Number j/c-1", "Date 3 November 2026", "Jos\xe9 \\(the third\\) .)", "(paper)", "(2.50)", "(7.50)"} {
		require.Contains(t, text, want)
	}
}

func TestLongInvoiceHasPages(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, renderPDF(&b, bill(t, 200)))
	require.GreaterOrEqual(t, bytes.Count(b.Bytes(), []byte("/Type /Page\n")), 4)
	require.Contains(t, pages(t, b.Bytes()), "(500.00)")
	require.Equal(t, 200, strings.Count(pages(t, b.Bytes()), "(paper)"))
}

func TestLongTextIsCut(t *testing.T) {
	x := bill(t, 1)
	x.Lines[0].Item = strings.Repeat("wide ", 100)
	var b bytes.Buffer
	require.NoError(t, renderPDF(&b, x))
	require.Regexp(t, `\(wide wide [^)]*\.\.\.\)`, pages(t, b.Bytes()))
}

func BenchmarkInvoice(b *testing.B) {
	t := &testing.T{}
	x := bill(t, 4)
	for b.Loop() {
		if err := renderPDF(io.Discard, x); err != nil {
			b.Fatal(err)
		}
	}
}
