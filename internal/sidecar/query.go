package sidecar

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// Limits of list pages.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// query reads parameters and collects what is wrong with them.
type query struct {
	values url.Values
	faults []api.Field
}

func (q *query) bad(name, reason string) {
	q.faults = append(q.faults, api.Field{Parameter: name, Reason: reason})
}

// only refuses parameters that the route does not have: a misspelt filter must not select everything.
func (q *query) only(names ...string) {
	for name := range q.values {
		known := false
		for _, n := range names {
			known = known || n == name
		}
		if !known {
			q.bad(name, "unknown parameter")
		}
	}
}

func (q *query) limit() int {
	s := q.values.Get("limit")
	if s == "" {
		return defaultLimit
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxLimit {
		q.bad("limit", "a number from 1 to "+strconv.Itoa(maxLimit))
		return defaultLimit
	}
	return n
}

// words reads a list of words, comma-separated or repeated, each one of the known.
func (q *query) words(name string, known []string) []string {
	var out []string
	for _, v := range q.values[name] {
		for w := range strings.SplitSeq(v, ",") {
			ok := false
			for _, k := range known {
				ok = ok || k == w
			}
			if !ok {
				q.bad(name, strconv.Quote(w)+" is none of "+strings.Join(known, " "))
				continue
			}
			out = append(out, w)
		}
	}
	return out
}

// token reads the cursor of a list.
func (q *query) token(kind string) string {
	at, err := parsePageToken(kind, q.values.Get("cursor"))
	if err != nil {
		q.bad("cursor", err.Error())
	}
	return at
}

// place reads a cursor that holds a place among the tasks.
func (q *query) place(kind string) (at Place) {
	text := q.token(kind)
	if text == "" {
		return at
	}
	feeder, index, _ := strings.Cut(text, ":")
	f, err1 := strconv.ParseUint(feeder, 10, 32)
	i, err2 := strconv.ParseUint(index, 10, 32)
	if err1 != nil || err2 != nil {
		q.bad("cursor", "not a cursor of this list")
	}
	return Place{uint32(f), uint32(i)}
}

// placeToken makes the cursor of a place; nil = there is no next page.
func placeToken(kind string, at *Place) string {
	if at == nil {
		return ""
	}
	return pageToken(kind, strconv.FormatUint(uint64(at.Feeder), 10)+":"+strconv.FormatUint(uint64(at.Index), 10))
}

// millis reads a time: RFC 3339, or ms since the epoch. 0 = absent.
func (q *query) millis(name string) int64 {
	s := q.values.Get(name)
	if s == "" {
		return 0
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 0 {
		return n
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		q.bad(name, "a time as RFC 3339, or in ms since the epoch")
		return 0
	}
	return t.UnixMilli()
}

// duration reads a span of time up to max. 0 = absent.
func (q *query) duration(name string, max time.Duration) time.Duration {
	s := q.values.Get(name)
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || d > max {
		q.bad(name, "a duration such as 30s, at most "+max.String())
		return 0
	}
	return d
}

func (q *query) err() error {
	if len(q.faults) == 0 {
		return nil
	}
	return invalid(q.faults...)
}
