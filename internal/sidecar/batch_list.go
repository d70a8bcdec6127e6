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
	return filter{
		states:       q.words("state", stateWords),
		labels:       q.labels(),
		topology:     q.values.Get("topology"),
		startedAfter: q.millis("started_after"), startedBefore: q.millis("started_before"),
	}
}

func (q *query) labels() map[string]string {
	labels := map[string]string{}
	for _, l := range q.values["label"] {
		k, v, ok := strings.Cut(l, ":")
		if !ok || k == "" {
			q.bad("label", strconv.Quote(l)+" is not <name>:<value>")
		}
		labels[k] = v
	}
	return labels
}

func (f *filter) match(b *api.Batch) bool {
	return f.matchState(b.State, b.Terminal) && f.matchTopology(b.Topology) && f.matchTime(int64(b.StartedAt)) && f.matchLabels(b.Labels)
}

func (f *filter) matchState(state string, terminal bool) bool {
	if len(f.states) == 0 {
		return true
	}
	for _, s := range f.states {
		if s == state || s == "active" && !terminal || s == "ended" && terminal {
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
	page, next, err := scan(s.cfg.Batches.Scan, f.match, after, limit, s.cfg.ScanRows)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	list := api.BatchList{Batches: page}
	if next != "" {
		list.Next = pageToken(batchTokens, next)
	}
	s.markStale(w, s.cfg.Batches)
	writeJSON(w, 200, list)
}

// scan collects at most limit matches out of at most rows rows above after.
func scan[T any](next func(after string, n int) ([]T, string, error), match func(*T) bool, after string, limit, rows int) (page []T, more string, err error) {
	page = []T{}
	for seen := 0; seen < rows; {
		n := min(limit-len(page), rows-seen)
		got, more, err := next(after, n)
		if err != nil {
			return nil, "", err
		}
		for i := range got {
			if match(&got[i]) {
				page = append(page, got[i])
			}
		}
		if more == "" || len(page) == limit {
			return page, more, nil
		}
		seen += n
		after = more
	}
	return page, after, nil
}
