package sidecar

import (
	"fmt"
	"net/http"

	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// jobStateWords are the words of ?state=. active stands for waiting and running; ended for the others.
var jobStateWords = []string{"active", "ended", "waiting", "running", "completed", "completed_with_failures", "failed",
	"cancelled", "expired", "collected"}

// jobFilter of the list of jobs.
type jobFilter struct {
	filter                          // states, labels
	customer, kind                  string
	requestedAfter, requestedBefore int64 // ms; 0 = open
}

func (q *query) jobFilter() jobFilter {
	return jobFilter{
		filter:   filter{states: q.words("state", jobStateWords), labels: q.labels()},
		customer: q.values.Get("customer"), kind: q.values.Get("type"),
		requestedAfter: q.millis("requested_after"), requestedBefore: q.millis("requested_before"),
	}
}

func (f *jobFilter) match(j *api.Job) bool {
	at := int64(j.RequestedAt)
	return f.matchState(j.State, j.Terminal) && f.matchLabels(j.Labels) &&
		(f.customer == "" || f.customer == j.Customer) &&
		(f.kind == "" || f.kind == j.Type || f.kind == fmt.Sprintf("%s@%d", j.Type, j.TypeVersion)) &&
		(f.requestedAfter == 0 || at >= f.requestedAfter) && (f.requestedBefore == 0 || at < f.requestedBefore)
}

const jobTokens = "j:"

// listJobs gives one page in the order of the keys. It looks at a bounded number of rows, so a page may be short before
// the end.
func (s *Server) listJobs(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	q.only("state", "label", "customer", "type", "requested_after", "requested_before", "limit", "cursor", "at_least")
	f, limit, after := q.jobFilter(), q.limit(), q.token(jobTokens)
	if err := q.err(); err != nil {
		s.fail(w, r, err)
		return
	}
	page, next, err := scan(s.cfg.Jobs.Scan, f.match, after, limit, s.cfg.ScanRows)
	if err != nil {
		s.failJob(w, r, err)
		return
	}
	for i := range page {
		page[i].Input = nil
		for k := range page[i].Steps {
			page[i].Steps[k].Result = nil
		}
		if err := s.countSteps(&page[i]); err != nil {
			s.failJob(w, r, err)
			return
		}
	}
	list := api.JobList{Jobs: page}
	if next != "" {
		list.Next = pageToken(jobTokens, next)
	}
	s.markStale(w, s.cfg.Jobs)
	writeJSON(w, 200, list)
}
