package sidecar_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/sidecartest"
)

func TestOnlyLoopbackGoesWithoutToken(t *testing.T) {
	d := sidecartest.New()
	for addr, token := range map[string]string{"0.0.0.0:0": "", ":7878": "", "[::]:1": "", "192.0.2.1:80": "", "example.org:80": "", "nonsense": "x"} {
		_, err := sidecar.New(sidecar.Config{Sources: sidecar.Sources{Batches: d, Log: d}, Listen: addr, Token: token})
		require.Error(t, err, addr)
	}
	for addr, token := range map[string]string{"0.0.0.0:0": "t", "127.0.0.1:0": "", "[::1]:0": "", "localhost:0": "", "127.8.8.8:1": ""} {
		_, err := sidecar.New(sidecar.Config{Sources: sidecar.Sources{Batches: d, Log: d}, Listen: addr, Token: token})
		require.NoError(t, err, addr)
	}
	_, err := sidecar.New(sidecar.Config{Sources: sidecar.Sources{Batches: d, Log: d}, Listen: ":1", TLS: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert}})
	require.NoError(t, err, "client certificates replace the token")
	_, err = sidecar.New(sidecar.Config{Sources: sidecar.Sources{Batches: d, Log: d}, Listen: ":1", TLS: &tls.Config{}})
	require.Error(t, err, "TLS alone does not say who calls")
}

func TestToken(t *testing.T) {
	b := setup(t, func(c *sidecar.Config) { c.Token = "s3cret" })
	for _, header := range []string{"", "Bearer wrong", "Bearer s3cre", "Bearer s3crett", "Basic s3cret", "s3cret"} {
		r := b.get("/v1/batches", "Authorization", header)
		r.problem(401, api.ProblemAuth)
		require.NotEmpty(t, r.header.Get("WWW-Authenticate"))
	}
	b.post("/v1/batches", `{"id":"b"}`).problem(401, api.ProblemAuth)
	b.get("/metrics").problem(401, api.ProblemAuth)
	b.get("/v1/batches", "Authorization", "Bearer s3cret").ok(200, nil)
	b.get("/healthz").ok(200, nil)
	b.get("/").ok(200, nil)
}

func TestOtherSitesAreKeptAway(t *testing.T) {
	b := setup(t)
	b.get("/v1/batches", "Host", "evil.example").problem(403, api.ProblemForbidden)
	b.post("/v1/batches", `{"id":"b"}`, "Sec-Fetch-Site", "cross-site").problem(403, api.ProblemForbidden)
	b.post("/v1/batches", `{"id":"b"}`, "Origin", "https://evil.example").problem(403, api.ProblemForbidden)
	b.post("/v1/batches", `{"id":"b"}`, "Sec-Fetch-Site", "same-origin").ok(201, nil)
}

func TestServeStopsWithoutLeaks(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	d := sidecartest.New()
	s, err := sidecar.New(sidecar.Config{Sources: sidecar.Sources{Batches: d, Log: d, Events: d}})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://" + l.Addr().String() + "/v1/events") // an open stream must not hold the stop
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 200, resp.StatusCode)
	cancel()
	select {
	case err := <-served:
		require.NoError(t, err)
	case <-time.After(3 * time.Second):
		require.Fail(t, "the open stream held the stop")
	}
}
