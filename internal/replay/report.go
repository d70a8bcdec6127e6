package replay

import (
	"fmt"
	"strings"

	"github.com/quiesce/quiesce/codecs"
)

// Report is what Diff found. Rows are one stable line each.
type Report struct {
	Same      int         `json:"same"`                // rows that the log explains
	Altered   []Altered   `json:"altered,omitempty"`   // rows that it does not
	Unchecked []Unchecked `json:"unchecked,omitempty"` // what could not be judged, and why
}

// Altered is a row that differs from the fold of its log.
type Altered struct {
	Partition int32  `json:"partition"`
	Key       string `json:"key"`    // as codecs.KeyString prints it
	Table     string `json:"table"`  // the row in the table; "" = none
	Folded    string `json:"folded"` // the row as the log makes it; "" = none
}

// Unchecked is a row, or a whole partition, that the log cannot be held against.
type Unchecked struct {
	Partition int32  `json:"partition"`
	Key       string `json:"key,omitempty"` // "" = the partition
	Rows      int    `json:"rows"`
	Reason    string `json:"reason"`
}

func (r *Report) altered(p int32, key, table, folded string) {
	r.Altered = append(r.Altered, Altered{p, codecs.KeyString(key), table, folded})
}

func (r *Report) cannot(p int32, key string, rows int, reason string) {
	if key != "" {
		key = codecs.KeyString(key)
	}
	r.Unchecked = append(r.Unchecked, Unchecked{p, key, rows, reason})
}

// OK says that no row was found altered.
func (r *Report) OK() bool { return len(r.Altered) == 0 }

// Text renders the report for people.
func (r *Report) Text() string {
	var b strings.Builder
	unchecked := 0
	for _, u := range r.Unchecked {
		unchecked += u.Rows
	}
	fmt.Fprintf(&b, "%d rows as the log makes them, %d altered, %d not checked\n", r.Same, len(r.Altered), unchecked)
	for _, a := range r.Altered {
		fmt.Fprintf(&b, "altered  partition %d  %s\n  table:  %s\n  folded: %s\n", a.Partition, a.Key, orNone(a.Table), orNone(a.Folded))
	}
	for _, u := range r.Unchecked {
		what := u.Key
		if what == "" {
			what = fmt.Sprintf("all %d rows", u.Rows)
		}
		fmt.Fprintf(&b, "not checked  partition %d  %s: %s\n", u.Partition, what, u.Reason)
	}
	return b.String()
}

func orNone(s string) string {
	if s == "" {
		return "(no row)"
	}
	return s
}

// text is what is compared of a row: its line and the last offset in it.
func (r *Row) text() string { return rowText(r.Row, r.Applied) }

func rowText(row fmt.Stringer, applied int64) string { return fmt.Sprintf("%s  @%d", row, applied) }
