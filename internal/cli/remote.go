package cli

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
	"time"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// DefaultServer is where a sidecar listens unless it is told otherwise.
const DefaultServer = "http://127.0.0.1:7878"

// recoverFor bounds the wait for a sidecar whose view is still loading.
const recoverFor = 30 * time.Second

// remote is a sidecar.
type remote struct {
	server string
	token  string
}

func (r *remote) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.server, "server", DefaultServer, "address of a sidecar")
	cmd.Flags().StringVar(&r.token, "token", "", "token of the sidecar (better: QUIESCE_TOKEN)")
}

func (r *remote) validate(cmd *cobra.Command) error {
	u, err := url.Parse(r.server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return usage(cmd, "--server %q: want http://host:port", r.server)
	}
	return nil
}

// request is one call.
type request struct {
	method  string
	path    string // from /v1 on, already escaped
	query   url.Values
	key     string // Idempotency-Key
	version string // If-Match
	body    any
}

// get reads one document.
func (r *remote) get(ctx context.Context, path string, query url.Values, into any) error {
	return r.do(ctx, request{method: http.MethodGet, path: path, query: query}, into)
}

// do makes a call and decodes its answer. A refusal is an *api.Problem. While the sidecar's view loads it tries again.
func (r *remote) do(ctx context.Context, req request, into any) error {
	deadline := time.Now().Add(recoverFor)
	for {
		err := r.once(ctx, req, into)
		var p *api.Problem
		if !errors.As(err, &p) || p.Type != api.ProblemRecovering || time.Now().After(deadline) {
			return err
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func (r *remote) once(ctx context.Context, req request, into any) error {
	var body io.Reader
	if req.body != nil {
		b, err := json.Marshal(req.body)
		if err != nil {
			return fmt.Errorf("%s: %w", req.path, err)
		}
		body = bytes.NewReader(b)
	}
	address := strings.TrimSuffix(r.server, "/") + req.path
	if len(req.query) > 0 {
		address += "?" + req.query.Encode()
	}
	h, err := http.NewRequestWithContext(ctx, req.method, address, body)
	if err != nil {
		return fmt.Errorf("%s: %w", req.path, err)
	}
	for name, value := range map[string]string{"Idempotency-Key": req.key, "If-Match": req.version} {
		if value != "" {
			h.Header.Set(name, value)
		}
	}
	if body != nil {
		h.Header.Set("Content-Type", "application/json")
	}
	if r.token != "" {
		h.Header.Set("Authorization", "Bearer "+r.token)
	}
	resp, err := http.DefaultClient.Do(h)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("no sidecar at %s (start one with quiesce dev or run, or name it with --server): %w", r.server, err)
	}
	defer resp.Body.Close()
	return answer(resp, into)
}

func answer(resp *http.Response, into any) error {
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("answer of the sidecar: %w", err)
	}
	if resp.StatusCode >= 400 {
		p := &api.Problem{}
		if json.Unmarshal(b, p) != nil || p.Title == "" {
			return fmt.Errorf("the sidecar answers %s: %s", resp.Status, bytes.TrimSpace(b))
		}
		return p
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("answer of the sidecar: %w", err)
	}
	return nil
}

// batchPath is the path of a batch.
func batchPath(id string) string { return "/v1/batches/" + url.PathEscape(id) }

// isProblem says whether err is a refusal of that type.
func isProblem(err error, typ string) bool {
	var p *api.Problem
	return errors.As(err, &p) && p.Type == typ
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
