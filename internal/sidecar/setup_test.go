package sidecar_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/sidecartest"
)

// bundle is a sidecar over a deployment in memory. Every exchange is checked against the OpenAPI document.
type bundle struct {
	t   *testing.T
	d   *sidecartest.Deployment
	srv *httptest.Server
	cfg sidecar.Config
}

func setup(t *testing.T, edit ...func(*sidecar.Config)) *bundle {
	t.Helper()
	d := sidecartest.New()
	cfg := sidecar.Config{Sources: sidecar.Sources{Batches: d, Log: d, Events: d},
		Limits: sidecar.Limits{AtLeastTimeout: 5 * time.Second, Heartbeat: time.Hour},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, e := range edit {
		e(&cfg)
	}
	s, err := sidecar.New(cfg)
	require.NoError(t, err)
	b := &bundle{t: t, d: d, cfg: cfg, srv: httptest.NewServer(checked(t, s.Handler()))}
	t.Cleanup(b.srv.Close)
	return b
}

// answer is a response that was read.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

// do sends a request; header is name, value, name, value ...
func (b *bundle) do(method, path, body string, header ...string) *answer {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, b.srv.URL+path, strings.NewReader(body))
	require.NoError(b.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
		if strings.EqualFold(header[i], "host") {
			req.Host = header[i+1]
		}
	}
	resp, err := b.srv.Client().Do(req)
	require.NoError(b.t, err)
	defer resp.Body.Close()
	var buf bytes.Buffer
	_, err = buf.ReadFrom(resp.Body)
	require.NoError(b.t, err)
	return &answer{b.t, resp.StatusCode, resp.Header, buf.Bytes()}
}

func (b *bundle) get(path string, header ...string) *answer {
	b.t.Helper()
	return b.do("GET", path, "", header...)
}

func (b *bundle) post(path, body string, header ...string) *answer {
	b.t.Helper()
	if body == "" {
		body = "{}"
	}
	return b.do("POST", path, body, header...)
}

// start starts a batch and returns where its START stands.
func (b *bundle) start(id, body string) api.Started {
	b.t.Helper()
	var out api.Started
	b.post("/v1/batches", `{"id":"`+id+`"`+body+`}`).ok(201, &out)
	return out
}

// ok asks for a status and decodes the body.
func (a *answer) ok(status int, into any) {
	a.t.Helper()
	require.Equal(a.t, status, a.status, "%s", a.body)
	if into != nil {
		require.NoError(a.t, json.Unmarshal(a.body, into), "%s", a.body)
	}
}

// problem asks for a problem document of a status and type.
func (a *answer) problem(status int, kind string) api.Problem {
	a.t.Helper()
	require.Equal(a.t, status, a.status, "%s", a.body)
	require.Equal(a.t, "application/problem+json", a.header.Get("Content-Type"))
	var p api.Problem
	require.NoError(a.t, json.Unmarshal(a.body, &p))
	require.Equal(a.t, kind, p.Type, "%s", a.body)
	require.Equal(a.t, status, p.Status)
	return p
}

// names asks for a 422 that names this member or parameter.
func (a *answer) names(field string) {
	a.t.Helper()
	p := a.problem(422, api.ProblemInvalid)
	for _, f := range p.Errors {
		if f.Pointer == field || f.Parameter == field {
			require.NotEmpty(a.t, f.Reason)
			return
		}
	}
	require.Failf(a.t, "field not named", "want %s in %s", field, a.body)
}
