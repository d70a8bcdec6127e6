package sidecar

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/processors/stats"
)

const (
	statsTokens = "s:"
	statsDays   = 7 // that are shown when nothing is asked for; today is the last of them
)

// statsQuery is what is asked of the statistics. Empty names mean everything.
type statsQuery struct {
	kind, step, queue string
	from, to          int64 // days since 1970-01-01, both included
	by                func(stats.Key) stats.Key
	limit             int
	after             string // statsPlace of the last entry before
}

func (q *query) statsQuery(now time.Time) statsQuery {
	today := dayOf(now)
	f := statsQuery{kind: q.values.Get("type"), step: q.values.Get("step"), queue: q.values.Get("queue"),
		to: q.day("to", today), by: stats.ByDay, limit: q.limit(), after: q.token(statsTokens)}
	f.from = q.day("from", f.to-statsDays+1)
	if f.from > f.to {
		q.bad("from", "is after the last day")
	}
	switch q.values.Get("by") {
	case "", "day":
	case "total":
		f.by = stats.Overall
	default:
		q.bad("by", "day or total")
	}
	return f
}

// day reads a date, in UTC.
func (q *query) day(name string, otherwise int64) int64 {
	s := q.values.Get(name)
	if s == "" {
		return otherwise
	}
	t, err := time.Parse(time.DateOnly, s)
	if err != nil || t.Unix() < 0 {
		q.bad(name, "a date such as 2006-01-02, in UTC")
	}
	return dayOf(t)
}

func dayOf(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }

func (f *statsQuery) wants(k stats.Key) bool {
	return k.Day >= f.from && k.Day <= f.to && (f.kind == "" || f.kind == k.Type) && (f.step == "" || f.step == k.Step) &&
		(f.queue == "" || f.queue == k.Queue)
}

// statsPlace orders as the keys do: no id has a byte below the separator.
func statsPlace(k stats.Key) string {
	day := "00000000" + strconv.FormatInt(max(k.Day, 0), 10)
	return strings.Join([]string{k.Type, k.Step, k.Queue, day[len(day)-8:]}, "\x00")
}

// stats gives one page of the statistics: by job type, step and queue, for each day or for all of them together.
func (s *Server) stats(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	q.only("type", "step", "queue", "from", "to", "by", "limit", "cursor")
	f := q.statsQuery(s.cfg.Now())
	if err := q.err(); err != nil {
		s.fail(w, r, err)
		return
	}
	if s.cfg.Stats == nil {
		s.fail(w, r, &api.Problem{Type: api.ProblemUnavailable, Title: "No table of statistics is configured", Status: 501})
		return
	}
	rows, err := s.cfg.Stats.Rows(f.wants)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	list := api.StatsList{From: stats.Key{Day: f.from}.Date(), To: stats.Key{Day: f.to}.Date(), Stats: []stats.Snapshot{}}
	for _, row := range stats.Merge(rows, f.by) {
		if f.after != "" && statsPlace(row.Key) <= f.after {
			continue
		}
		if len(list.Stats) == f.limit {
			list.Next = pageToken(statsTokens, f.after)
			break
		}
		list.Stats = append(list.Stats, row.Snapshot())
		f.after = statsPlace(row.Key)
	}
	if s.cfg.Stats.Readiness().Stale {
		w.Header().Set("Quiesce-View", "reconnecting")
	}
	writeJSON(w, 200, list)
}
