package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/processors/stats"
)

// StatsFilter of statistics; every field is optional.
type StatsFilter struct {
	Type, Step, Queue string
	From, To          time.Time // days in UTC, both included; the last seven when absent
	Total             bool      // one row for all days
}

func (f StatsFilter) query() url.Values {
	q := url.Values{"limit": {"1000"}}
	for name, value := range map[string]string{"type": f.Type, "step": f.Step, "queue": f.Queue} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for name, t := range map[string]time.Time{"from": f.From, "to": f.To} {
		if !t.IsZero() {
			q.Set(name, t.UTC().Format(time.DateOnly))
		}
	}
	if f.Total {
		q.Set("by", "total")
	}
	return q
}

// Stats walks the statistics by job type, step, queue and day.
func (c *Client) Stats(ctx context.Context, f StatsFilter) iter.Seq2[*stats.Snapshot, error] {
	return pages(func(q url.Values) ([]stats.Snapshot, string, error) {
		page := &api.StatsList{}
		err := c.call(ctx, http.MethodGet, "/v1/stats", q, nil, nil, page)
		return page.Stats, page.Next, wrapped("statistics", err)
	}, f.query())
}
