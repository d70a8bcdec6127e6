package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// WriteOptions of one write. All are optional.
type WriteOptions struct {
	IdempotencyKey string // a repeat with the same key acts once
	Version        int64  // version that the batch must have; 0 = any
	Traceparent    string
}

func (o WriteOptions) header() http.Header {
	h := http.Header{}
	if o.IdempotencyKey != "" {
		h.Set("Idempotency-Key", o.IdempotencyKey)
	}
	if o.Version != 0 {
		h.Set("If-Match", strconv.Quote(strconv.FormatInt(o.Version, 10)))
	}
	if o.Traceparent != "" {
		h.Set("traceparent", o.Traceparent)
	}
	return h
}

// Start starts a batch; start may be empty. A run id is made when it has none.
func (c *Client) Start(ctx context.Context, batch string, start *codecs.BatchStart, o WriteOptions) (*api.Started, error) {
	body, err := bodyOf(start)
	if err != nil {
		return nil, err
	}
	body["id"], err = json.Marshal(batch)
	if err != nil {
		return nil, err
	}
	out := &api.Started{}
	if err := c.call(ctx, http.MethodPost, "/v1/batches", nil, o.header(), body, out); err != nil {
		return nil, fmt.Errorf("start batch %s: %w", batch, err)
	}
	c.Saw(batch, out.Position)
	return out, nil
}

// Seal says how many tasks a feeder has.
func (c *Client) Seal(ctx context.Context, batch string, seal *codecs.BatchSeal, o WriteOptions) (*api.Accepted, error) {
	return c.verb(ctx, batch, "seal", seal, o)
}

// Command sends a verb: cancel pause resume extend policy redrive reevaluate repair. args may be nil.
func (c *Client) Command(ctx context.Context, batch, verb string, args *codecs.CommandArgs, o WriteOptions) (*api.Accepted, error) {
	return c.verb(ctx, batch, verb, args, o)
}

func (c *Client) verb(ctx context.Context, batch, verb string, m proto.Message, o WriteOptions) (*api.Accepted, error) {
	body, err := bodyOf(m)
	if err != nil {
		return nil, err
	}
	out := &api.Accepted{}
	if err := c.call(ctx, http.MethodPost, batchPath(batch, ":"+verb), nil, o.header(), body, out); err != nil {
		return nil, fmt.Errorf("%s batch %s: %w", verb, batch, err)
	}
	c.Saw(batch, out.Position)
	return out, nil
}

// Report reports starts and outcomes of tasks.
func (c *Client) Report(ctx context.Context, batch string, report *codecs.BatchReport, o WriteOptions) (api.Position, error) {
	body, err := bodyOf(report)
	if err != nil {
		return api.Position{}, err
	}
	out := &api.Reported{}
	if err := c.call(ctx, http.MethodPost, batchPath(batch, "/reports"), nil, o.header(), body, out); err != nil {
		return api.Position{}, fmt.Errorf("report of batch %s: %w", batch, err)
	}
	c.Saw(batch, out.Position)
	return out.Position, nil
}

// bodyOf prints data as the members of a JSON object.
func bodyOf(m proto.Message) (map[string]json.RawMessage, error) {
	body := map[string]json.RawMessage{}
	if m == nil || !m.ProtoReflect().IsValid() {
		return body, nil
	}
	b, err := codecs.JSON(m)
	if err != nil {
		return nil, err
	}
	return body, json.Unmarshal(b, &body)
}
