package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// JobID names a job. Customer is needed exactly where the deployment keeps the jobs of each customer apart.
type JobID struct{ Job, Customer string }

// String is the customer, if there is one, and the job.
func (id JobID) String() string {
	if id.Customer == "" {
		return id.Job
	}
	return id.Customer + "/" + id.Job
}

// key of the job among the positions that were written; no batch has it.
func (id JobID) key() string { return "job\x00" + id.String() }

func (id JobID) query() url.Values {
	if id.Customer == "" {
		return url.Values{}
	}
	return url.Values{"customer": {id.Customer}}
}

func (id JobID) path(rest string) string { return "/v1/jobs/" + url.PathEscape(id.Job) + rest }

// SawJob makes later reads of a job at least as new as a position that came from elsewhere.
func (c *Client) SawJob(id JobID, p api.Position) { c.Saw(id.key(), p) }

func (c *Client) readJob(ctx context.Context, id JobID, rest string, q url.Values, into any) error {
	for k, v := range id.query() {
		q[k] = v
	}
	c.atLeast(id.key(), q)
	return c.call(ctx, http.MethodGet, id.path(rest), q, nil, nil, into)
}

// Job returns a job.
func (c *Client) Job(ctx context.Context, id JobID) (*api.Job, error) {
	j := &api.Job{}
	if err := c.readJob(ctx, id, "", url.Values{}, j); err != nil {
		return nil, fmt.Errorf("job %s: %w", id, err)
	}
	return j, nil
}

// WaitJob returns the job when it has ended, or ctx's error. each, if not nil, gets what the job is between requests.
func (c *Client) WaitJob(ctx context.Context, id JobID, each func(*api.Job)) (*api.Job, error) {
	for {
		j := &api.Job{}
		if err := c.readJob(ctx, id, "", url.Values{"wait": {waitSpan.String()}}, j); err != nil {
			return nil, fmt.Errorf("wait for job %s: %w", id, err)
		}
		if j.Terminal {
			return j, nil
		}
		if each != nil {
			each(j)
		}
	}
}

// JobAnswer returns the row's answer to a command.
func (c *Client) JobAnswer(ctx context.Context, id JobID, command string) (*api.Command, error) {
	a := &api.Command{}
	if err := c.readJob(ctx, id, "/commands/"+url.PathEscape(command), url.Values{}, a); err != nil {
		return nil, fmt.Errorf("command %s of job %s: %w", command, id, err)
	}
	return a, nil
}

// JobFilter of a list of jobs; every field is optional.
type JobFilter struct {
	States                          []string // active, ended, or the names of states
	Labels                          map[string]string
	Customer                        string
	Type                            string // name or name@version
	RequestedAfter, RequestedBefore time.Time
	Limit                           int // entries in a page
}

func (f JobFilter) query() url.Values {
	q := Filter{States: f.States, Labels: f.Labels, Limit: f.Limit}.query()
	for name, value := range map[string]string{"customer": f.Customer, "type": f.Type} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for name, t := range map[string]time.Time{"requested_after": f.RequestedAfter, "requested_before": f.RequestedBefore} {
		if !t.IsZero() {
			q.Set(name, strconv.FormatInt(t.UnixMilli(), 10))
		}
	}
	return q
}

// Jobs walks all jobs of a filter in the order of their keys. The sequence ends with an error, if there is one.
func (c *Client) Jobs(ctx context.Context, f JobFilter) iter.Seq2[*api.Job, error] {
	return pages(func(q url.Values) ([]api.Job, string, error) {
		page := &api.JobList{}
		err := c.call(ctx, http.MethodGet, "/v1/jobs", q, nil, nil, page)
		return page.Jobs, page.Next, wrapped("list jobs", err)
	}, f.query())
}

// JobTasks walks the tasks of a job's fan-out steps that have one of the outcomes (none = all), by step and index. step
// "" = of all steps.
func (c *Client) JobTasks(ctx context.Context, id JobID, step string, outcomes ...string) iter.Seq2[*api.JobTask, error] {
	q := url.Values{"limit": {"1000"}}
	if step != "" {
		q.Set("step", step)
	}
	if len(outcomes) > 0 {
		q.Set("outcome", strings.Join(outcomes, ","))
	}
	return pages(func(q url.Values) ([]api.JobTask, string, error) {
		page := &api.JobTaskList{}
		err := c.readJob(ctx, id, "/tasks", q, page)
		return page.Tasks, page.Next, wrapped("tasks of job "+id.String(), err)
	}, q)
}

// RequestJob requests a job. The customer of the id goes into the request.
func (c *Client) RequestJob(ctx context.Context, id JobID, req *codecs.JobRequested, o WriteOptions) (*api.Requested, error) {
	body, err := bodyOf(req)
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{"id": id.Job, "customer": id.Customer} {
		if value == "" {
			continue
		}
		if body[name], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	out := &api.Requested{}
	if err := c.call(ctx, http.MethodPost, "/v1/jobs", nil, o.header(), body, out); err != nil {
		return nil, fmt.Errorf("request job %s: %w", id, err)
	}
	c.SawJob(id, out.Position)
	return out, nil
}

// JobCommand sends a verb: cancel pause resume extend policy redrive repair. args may be nil.
func (c *Client) JobCommand(ctx context.Context, id JobID, verb string, args *codecs.JobCommandArgs, o WriteOptions) (*api.Accepted, error) {
	body, err := bodyOf(args)
	if err != nil {
		return nil, err
	}
	out := &api.Accepted{}
	if err := c.call(ctx, http.MethodPost, id.path(":"+verb), id.query(), o.header(), body, out); err != nil {
		return nil, fmt.Errorf("%s job %s: %w", verb, id, err)
	}
	c.SawJob(id, out.Position)
	return out, nil
}
