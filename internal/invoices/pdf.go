package invoices

import (
	"fmt"
	"io"
	"strconv"

	"github.com/go-pdf/fpdf"
	"golang.org/x/text/encoding/charmap"
)

// Layout, in mm on A4.
const (
	lineHeight = 6.0
	textSize   = 10.0
	titleSize  = 18.0
)

// table of an invoice.
var table = []struct {
	title string
	width float64
	align string
}{{"Order", 25, "L"}, {"Date", 25, "L"}, {"Item", 65, "L"}, {"Quantity", 20, "R"}, {"Price", 27, "R"}, {"Sum", 28, "R"}}

// windows1252 translates text into what the standard fonts know.
func windows1252(s string) string {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		c, ok := charmap.Windows1252.EncodeRune(r)
		if !ok {
			c = '.'
		}
		b = append(b, c)
	}
	return string(b)
}

// renderPDF writes an invoice. The same bill gives the same bytes.
func renderPDF(w io.Writer, b *Bill) error {
	p := fpdf.New("P", "mm", "A4", "")
	p.SetCatalogSort(true)
	p.SetCreationDate(b.Date)
	p.SetModificationDate(b.Date)
	p.SetTitle("Invoice "+b.Number, true)
	p.SetAuthor("Example Stationery", true)
	p.SetFooterFunc(func() {
		p.SetY(-15)
		p.SetFont("Helvetica", "", 8)
		p.CellFormat(0, lineHeight, windows1252(fmt.Sprintf("Invoice %s, page %d", b.Number, p.PageNo())), "", 0, "C", false, 0, "")
	})
	p.AddPage()
	p.SetFont("Helvetica", "B", titleSize)
	p.CellFormat(0, 12, "Invoice", "", 1, "L", false, 0, "")
	p.SetFont("Helvetica", "", textSize)
	for _, l := range []string{"Number " + b.Number, "Date " + b.Date.Format("2 January 2006"), "", b.Name, "Customer " + b.Customer, b.Mail, ""} {
		p.CellFormat(0, lineHeight, windows1252(l), "", 1, "L", false, 0, "")
	}
	row := func(style, border string, cells ...string) {
		p.SetFont("Helvetica", style, textSize)
		for i, c := range table {
			p.CellFormat(c.width, lineHeight, fit(p, windows1252(cells[i]), c.width-2), border, 0, c.align, false, 0, "")
		}
		p.Ln(lineHeight)
	}
	var titles []string
	for _, c := range table {
		titles = append(titles, c.title)
	}
	row("B", "B", titles...)
	for _, l := range b.Lines {
		row("", "", l.Order, l.Date.Format("2006-01-02"), l.Item, strconv.Itoa(l.Quantity), l.Price.String(), l.Sum.String())
	}
	row("B", "T", "Total", "", "", "", "", b.Total.String())
	if err := p.Output(w); err != nil {
		return fmt.Errorf("render invoice %s: %w", b.Number, err)
	}
	return nil
}

// fit cuts text that is wider than width.
func fit(p *fpdf.Fpdf, s string, width float64) string {
	if p.GetStringWidth(s) <= width {
		return s
	}
	for len(s) > 0 && p.GetStringWidth(s+"...") > width {
		s = s[:len(s)-1]
	}
	return s + "..."
}
