package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/quiesce/quiesce/internal/sidecar/api"
)

const (
	jobTaskTokens = "jt:"
	maxTaskSteps  = 8 // batches that one page looks into
)

// jobPlace is where a page of a job's tasks begins.
type jobPlace struct {
	step int // index in the definition
	Place
}

func (q *query) jobPlace() (at jobPlace) {
	text := q.token(jobTaskTokens)
	if text == "" {
		return at
	}
	if n, err := fmt.Sscanf(text, "%d:%d:%d", &at.step, &at.Feeder, &at.Index); n != 3 || err != nil || at.step < 0 {
		q.bad("cursor", "not a cursor of this list")
		return jobPlace{}
	}
	return at
}

// listJobTasks gives the tasks of the batches of the job's fan-out steps.
func (s *Server) listJobTasks(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	q.only("step", "outcome", "limit", "cursor", "customer", "at_least")
	outcomes, limit, from := q.words("outcome", outcomeWords), q.limit(), q.jobPlace()
	if err := q.err(); err != nil {
		s.fail(w, r, err)
		return
	}
	j, err := s.cfg.Jobs.Get(s.jobOf(r).key)
	if err != nil {
		s.failJob(w, r, err)
		return
	}
	steps, err := chosen(j, q.values.Get("step"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	list := api.JobTaskList{Job: j.Job, Customer: j.Customer, Tasks: []api.JobTask{}}
	if j.State != "collected" { // else the batches are gone
		if err := s.awaitEnds(r.Context(), steps[min(from.step, len(steps)):]); err != nil {
			s.failJob(w, r, err)
			return
		}
	}
	next, err := s.jobTasks(&list, steps, outcomes, from, limit)
	if err != nil {
		s.failJob(w, r, err)
		return
	}
	if next != nil {
		list.Next = pageToken(jobTaskTokens, fmt.Sprintf("%d:%d:%d", next.step, next.Feeder, next.Index))
	}
	s.markStale(w, s.cfg.Batches)
	writeJSON(w, 200, list)
}

// chosen returns the fan-out steps of a job that are wanted; name "" = all. Others are left as they are, without batch.
func chosen(j *api.Job, name string) ([]api.JobStep, error) {
	found := name == ""
	for i := range j.Steps {
		st := &j.Steps[i]
		switch {
		case st.Step == name && st.Split == "":
			return nil, badParameter("step", "is a single task: the job shows its outcome")
		case st.Step == name:
			found = true
		case name != "":
			st.Batch = ""
		}
	}
	if !found {
		return nil, badParameter("step", "the job has no such step")
	}
	return j.Steps, nil
}

// awaitEnds waits until the view of batches has the ends that the job's row tells of: it follows another table, and may be
// behind. Only a step with counts had a batch that ended.
func (s *Server) awaitEnds(ctx context.Context, steps []api.JobStep) error {
	for _, st := range steps {
		if st.Batch == "" || st.EndedAt == 0 || st.Counts == nil || st.Counts.Total == 0 {
			continue
		}
		t := target{table: s.cfg.Batches, key: st.Batch}
		done, err := s.until(ctx, t, s.cfg.AtLeastTimeout, func() (bool, error) {
			b, err := s.cfg.Batches.Get(st.Batch)
			if errors.Is(err, ErrUnknown) {
				return false, nil
			}
			return err == nil && b.Terminal && b.Run == st.Run && b.Round >= st.BatchRound, err
		})
		if err == nil && !done {
			err = notYet("the end of batch " + st.Batch + " was not seen within " + s.cfg.AtLeastTimeout.String() + ": it is on its way, was collected, or has begun anew")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// jobTasks fills a page and says where the next one begins; nil = the end.
func (s *Server) jobTasks(list *api.JobTaskList, steps []api.JobStep, outcomes []string, from jobPlace, limit int) (*jobPlace, error) {
	seen := 0
	for i := from.step; i < len(steps); i++ {
		st := steps[i]
		if st.Batch == "" {
			continue
		}
		at := jobPlace{step: i}
		if i == from.step {
			at = from
		}
		if len(list.Tasks) == limit || seen == maxTaskSteps {
			return &at, nil
		}
		seen++
		page, err := s.cfg.Batches.Tasks(st.Batch, outcomes, at.Place, limit-len(list.Tasks))
		switch {
		case errors.Is(err, ErrUnknown): // not started yet, or collected
			continue
		case err != nil:
			return nil, err
		case page.Run != st.Run: // the batch that the step has now is still on its way
			continue
		}
		for _, t := range page.Tasks {
			list.Tasks = append(list.Tasks, api.JobTask{Step: st.Step, Batch: st.Batch, Task: t})
		}
		if page.Next != nil {
			return &jobPlace{step: i, Place: *page.Next}, nil
		}
	}
	return nil, nil
}
