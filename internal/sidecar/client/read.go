package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// Get returns a batch.
func (c *Client) Get(ctx context.Context, batch string) (*api.Batch, error) {
	b := &api.Batch{}
	if err := c.read(ctx, batch, "", nil, b); err != nil {
		return nil, fmt.Errorf("batch %s: %w", batch, err)
	}
	return b, nil
}

// waitSpan is the longest time that one request waits; a wait is made of as many as it needs.
const waitSpan = 30 * time.Second

// Wait returns the batch when it has ended, or ctx's error. each, if not nil, gets what the batch is between requests.
func (c *Client) Wait(ctx context.Context, batch string, each func(*api.Batch)) (*api.Batch, error) {
	for {
		b := &api.Batch{}
		if err := c.read(ctx, batch, "", url.Values{"wait": {waitSpan.String()}}, b); err != nil {
			return nil, fmt.Errorf("wait for batch %s: %w", batch, err)
		}
		if b.Terminal {
			return b, nil
		}
		if each != nil {
			each(b)
		}
	}
}

// Explain says why a batch has not ended.
func (c *Client) Explain(ctx context.Context, batch string) (*api.Explain, error) {
	x := &api.Explain{}
	if err := c.read(ctx, batch, "/explain", nil, x); err != nil {
		return nil, fmt.Errorf("explain batch %s: %w", batch, err)
	}
	return x, nil
}

// Answer returns the row's answer to a command.
func (c *Client) Answer(ctx context.Context, batch, command string) (*api.Command, error) {
	a := &api.Command{}
	if err := c.read(ctx, batch, "/commands/"+url.PathEscape(command), nil, a); err != nil {
		return nil, fmt.Errorf("command %s of batch %s: %w", command, batch, err)
	}
	return a, nil
}

// Filter of a list of batches; every field is optional.
type Filter struct {
	States                      []string // active, ended, or the names of states
	Labels                      map[string]string
	Topology                    string // name or name@version
	StartedAfter, StartedBefore time.Time
	Limit                       int // entries in a page
}

func (f Filter) query() url.Values {
	q := url.Values{}
	if len(f.States) > 0 {
		q.Set("state", strings.Join(f.States, ","))
	}
	for k, v := range f.Labels {
		q.Add("label", k+":"+v)
	}
	if f.Topology != "" {
		q.Set("topology", f.Topology)
	}
	if !f.StartedAfter.IsZero() {
		q.Set("started_after", strconv.FormatInt(f.StartedAfter.UnixMilli(), 10))
	}
	if !f.StartedBefore.IsZero() {
		q.Set("started_before", strconv.FormatInt(f.StartedBefore.UnixMilli(), 10))
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	return q
}

// List walks all batches of a filter in id order. The sequence ends with an error, if there is one.
func (c *Client) List(ctx context.Context, f Filter) iter.Seq2[*api.Batch, error] {
	return pages(func(q url.Values) ([]api.Batch, string, error) {
		page := &api.BatchList{}
		err := c.call(ctx, http.MethodGet, "/v1/batches", q, nil, nil, page)
		return page.Batches, page.Next, wrapped("list batches", err)
	}, f.query())
}

// Tasks walks the tasks of a batch that have one of the outcomes (none = all) in index order.
func (c *Client) Tasks(ctx context.Context, batch string, outcomes ...string) iter.Seq2[*api.Task, error] {
	q := url.Values{"limit": {"1000"}}
	if len(outcomes) > 0 {
		q.Set("outcome", strings.Join(outcomes, ","))
	}
	return pages(func(q url.Values) ([]api.Task, string, error) {
		page := &api.TaskList{}
		err := c.read(ctx, batch, "/tasks", q, page)
		return page.Tasks, page.Next, wrapped("tasks of batch "+batch, err)
	}, q)
}

// Missing walks what a batch waits for, page by page: ranges of indexes, and units on the first page.
func (c *Client) Missing(ctx context.Context, batch string) iter.Seq2[*api.Missing, error] {
	return func(yield func(*api.Missing, error) bool) {
		q := url.Values{"limit": {"1000"}}
		for {
			page := &api.Missing{}
			if err := c.read(ctx, batch, "/missing", q, page); err != nil {
				yield(nil, fmt.Errorf("missing of batch %s: %w", batch, err))
				return
			}
			if !yield(page, nil) || page.Next == "" {
				return
			}
			q.Set("cursor", page.Next)
		}
	}
}

// Topologies returns the topologies that the sidecar knows.
func (c *Client) Topologies(ctx context.Context) (*api.TopologyList, error) {
	list := &api.TopologyList{}
	if err := c.call(ctx, http.MethodGet, "/v1/topology", nil, nil, nil, list); err != nil {
		return nil, fmt.Errorf("topologies: %w", err)
	}
	return list, nil
}

// Ready fails with ErrRecovering while the sidecar loads its view, and with ErrUnreachable when there is none.
func (c *Client) Ready(ctx context.Context) error {
	return c.call(ctx, http.MethodGet, "/readyz", nil, nil, nil, &api.Health{})
}
