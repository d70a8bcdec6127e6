package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// DefaultAddress is where a sidecar listens when nothing else is configured.
const DefaultAddress = "http://127.0.0.1:7878"

// Config of a client. The zero value of a field means the default that its comment gives.
type Config struct {
	Address string       // base URL or host:port; default DefaultAddress
	Token   string       // bearer token; none by default
	HTTP    *http.Client // default http.DefaultClient; calls end with their context, it needs no time-out
}

// Client of one sidecar.
type Client struct {
	base  string
	token string
	http  *http.Client

	mu      sync.Mutex
	written map[string]api.Position // last write per batch, and per key of a JobID
}

// New checks the address; it does not connect.
func New(cfg Config) (*Client, error) {
	if cfg.Address == "" {
		cfg.Address = DefaultAddress
	}
	if !strings.Contains(cfg.Address, "://") {
		cfg.Address = "http://" + cfg.Address
	}
	u, err := url.Parse(cfg.Address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("sidecar address %q is not http://host:port", cfg.Address)
	}
	if cfg.HTTP == nil {
		cfg.HTTP = http.DefaultClient
	}
	return &Client{base: strings.TrimSuffix(cfg.Address, "/"), token: cfg.Token, http: cfg.HTTP,
		written: map[string]api.Position{}}, nil
}

// Saw makes later reads of a batch at least as new as a position that came from elsewhere.
func (c *Client) Saw(batch string, p api.Position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if have, ok := c.written[batch]; !ok || have.Partition != p.Partition || have.Offset < p.Offset {
		c.written[batch] = p
	}
}

// batchPath is the path of a batch and what hangs on it.
func batchPath(batch, rest string) string { return "/v1/batches/" + url.PathEscape(batch) + rest }

// read asks for a batch or a part of it, at least as new as this client's last write to it.
func (c *Client) read(ctx context.Context, batch, rest string, q url.Values, into any) error {
	if q == nil {
		q = url.Values{}
	}
	c.atLeast(batch, q)
	return c.call(ctx, http.MethodGet, batchPath(batch, rest), q, nil, nil, into)
}

// atLeast asks for what this client wrote last under a key.
func (c *Client) atLeast(key string, q url.Values) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.written[key]; ok {
		q.Set("at_least", p.String())
	}
}

// call does one exchange. body and into are JSON; into may be nil.
func (c *Client) call(ctx context.Context, method, path string, q url.Values, header http.Header, body, into any) error {
	resp, err := c.send(ctx, method, path, q, header, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return c.unreachable(ctx, err)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("sidecar %s: answer to %s %s: %w", c.base, method, path, err)
	}
	return nil
}

// maxAnswer bounds one answer: a page of 1,000 batches stays far below it.
const maxAnswer = 64 << 20

// send does a request and turns every status from 400 on into an Error.
func (c *Client) send(ctx context.Context, method, path string, q url.Values, header http.Header, body any) (*http.Response, error) {
	target := c.base + path
	if len(q) > 0 {
		target += "?" + q.Encode()
	}
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, target, r)
	if err != nil {
		return nil, err
	}
	for k, v := range header {
		req.Header[k] = v
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if resp.StatusCode >= 400 {
		defer resp.Body.Close()
		return nil, problemOf(resp)
	}
	return resp, nil
}

// unreachable keeps the context's own error when that is why the call ended.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("%w at %s: %w", ErrUnreachable, c.base, err)
}
