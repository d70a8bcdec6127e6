package sidecar

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// States are the words of ?state=. active stands for orphan, open and sealed; ended for the others.
var stateWords = []string{"active", "ended", "orphan", "open", "sealed", "completed", "completed_with_failures", "failed",
	"cancelled", "expired", "inconsistent", "collected"}

// filter of the list of batches.
type filter struct {
	states                      []string
	labels                      map[string]string
	topology                    string // name, or name@version
	startedAfter, startedBefore int64  // ms; 0 = open
}

func (q *query) filter() filter {
	f := filter{
		states:       q.words("state", stateWords),
		labels:       map[string]string{},
		topology:     q.values.Get("topology"),
		startedAfter: q.millis("started_after"), startedBefore: q.millis("started_before"),
	}
	for _, l := range q.values["label"] {
		k, v, ok := strings.Cut(l, ":")
		if !ok || k == "" {
			q.bad("label", strconv.Quote(l)+" is not <name>:<value>")
		}
		f.labels[k] = v
	}
	return f
}

func (f *filter) match(b *api.Batch) bool {
	return f.matchState(b) && f.matchTopology(b.Topology) && f.matchTime(int64(b.StartedAt)) && f.matchLabels(b.Labels)
}

func (f *filter) matchState(b *api.Batch) bool {
	if len(f.states) == 0 {
		return true
	}
	for _, s := range f.states {
		if s == b.State || s == "active" && !b.Terminal || s == "ended" && b.Terminal {
			return true
		}
	}
	return false
}

func (f *filter) matchTopology(t *api.Topology) bool {
	return f.topology == "" || t != nil && (t.Name == f.topology || t.Name+"@"+strconv.Itoa(int(t.Version)) == f.topology)
}

func (f *filter) matchTime(started int64) bool {
	return (f.startedAfter == 0 || started >= f.startedAfter) && (f.startedBefore == 0 || started < f.startedBefore)
}

func (f *filter) matchLabels(labels map[string]string) bool {
	for k, v := range f.labels {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

const batchTokens = "b:"

// listBatches gives one page in id order. It looks at a bounded number of rows, so a page may be short before the end.
func (s *Server) listBatches(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	q.only("state", "label", "topology", "started_after", "started_before", "limit", "cursor", "at_least")
	f, limit, after := q.filter(), q.limit(), q.token(batchTokens)
	if err := q.err(); err != nil {
		s.fail(w, r, err)
		return
	}
	page, next, err := s.scan(&f, after, limit)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	list := api.BatchList{Batches: page}
	if next != "" {
		list.Next = pageToken(batchTokens, next)
	}
	writeJSON(w, 200, list)
}

// scan collects at most limit matches out of at most ScanRows rows above after.
func (s *Server) scan(f *filter, after string, limit int) (page []api.Batch, next string, err error) {
	page = []api.Batch{}
	for seen := 0; seen < s.cfg.ScanRows; {
		rows, more, err := s.cfg.Batches.Scan(after, min(limit-len(page), s.cfg.ScanRows-seen))
		if err != nil {
			return nil, "", err
		}
		for i := range rows {
			if f.match(&rows[i]) {
				page = append(page, rows[i])
			}
		}
		seen += max(len(rows), 1)
		if more == "" || len(page) == limit {
			return page, more, nil
		}
		after = more
	}
	return page, after, nil
}
