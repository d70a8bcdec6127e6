package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	machine "github.com/quiesce/quiesce/processors/notify"
)

// The example of the Standard Webhooks specification.
func TestSignatureOfTheSpecification(t *testing.T) {
	key, err := parseSecret(secret)
	require.NoError(t, err)
	require.Equal(t, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
		sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`)))
}

func TestWebhookSigned(t *testing.T) {
	var got *http.Request
	var body []byte
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	d := deliverer(t, Config{AllowPrivate: true, Secrets: map[string]string{"ops": secret}, TLS: &tls.Config{RootCAs: roots}})
	require.NoError(t, d.Deliver(context.Background(), task(t, machine.Subscription{Event: "batch.*", URL: srv.URL + "/hook?x=1", Secret: "ops"})))

	require.Equal(t, "POST /hook?x=1", got.Method+" "+got.URL.String())
	require.Equal(t, "application/json", got.Header.Get("content-type"))
	require.Equal(t, "b-1/r/1/terminal", got.Header.Get("webhook-id"))
	require.Equal(t, "1700000000", got.Header.Get("webhook-timestamp"))
	key, err := parseSecret(secret)
	require.NoError(t, err)
	require.Equal(t, sign(key, "b-1/r/1/terminal", "1700000000", body), got.Header.Get("webhook-signature"))
	require.JSONEq(t, `{"id":"b-1/r/1/terminal","type":"batch.failed","timestamp":"2023-11-14T22:13:20.123Z","subject":"b-1",
		"data":{"run":"r","state":"failed","reason":"2 of 3 failed","counts":{"total":3,"failed":2}}}`, string(body))
}

func TestWebhookStatus(t *testing.T) {
	code := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(code)
		fmt.Fprint(w, "because")
	}))
	t.Cleanup(srv.Close)
	d := deliverer(t, Config{AllowPrivate: true})
	for c, want := range map[int]string{
		200: "ok", 204: "ok", 299: "ok",
		301: "never", 307: "never", 400: "never", 401: "never", 404: "never", 410: "never", 422: "never",
		408: "later", 425: "later", 429: "later", 500: "later", 502: "later", 503: "later",
	} {
		code = c
		err := d.Deliver(context.Background(), task(t, machine.Subscription{Event: "*", URL: srv.URL}))
		require.Equal(t, want, verdict(err), "status %d: %v", c, err)
		if want != "ok" {
			require.ErrorContains(t, err, fmt.Sprint("status ", c))
		}
		if want == "later" {
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, 7*time.Second, e.After)
		}
	}
}

func verdict(err error) string {
	switch {
	case err == nil:
		return "ok"
	case Retryable(err):
		return "later"
	}
	return "never"
}

func TestPrivateAddressesAreRefusedWhenDialled(t *testing.T) {
	called := false
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	t.Cleanup(srv.Close)
	d := deliverer(t, Config{TLS: &tls.Config{InsecureSkipVerify: true}}) // only the address stands in the way
	port := srv.Listener.Addr().(interface{ AddrPort() netip.AddrPort }).AddrPort().Port()
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		err := d.Deliver(context.Background(), task(t, machine.Subscription{Event: "*", URL: fmt.Sprintf("https://%s:%d/", host, port)}))
		require.ErrorContains(t, err, "is not public", host)
		require.Equal(t, "never", verdict(err), host)
	}
	require.ErrorContains(t, d.Deliver(context.Background(), task(t, machine.Subscription{Event: "*", URL: "http://example.com"})), "plain http")
	require.False(t, called)
}

func TestPublicAddresses(t *testing.T) {
	for a, want := range map[string]bool{
		"93.184.216.34": true, "2606:2800:220:1::1": true,
		"10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "127.0.0.1": false, "169.254.169.254": false,
		"100.64.0.1": false, "0.0.0.0": false, "0.1.2.3": false, "224.0.0.1": false, "255.255.255.255": false, "198.18.0.1": false,
		"::": false, "::1": false, "fe80::1": false, "fd00::1": false, "ff02::1": false, "::ffff:10.0.0.1": false,
		"64:ff9b::a00:1": false, "2002:a00:1::": false, "::10.0.0.1": false, "fe80::1%eth0": false,
	} {
		require.Equal(t, want, public(netip.MustParseAddr(a)), a)
	}
}

func TestWebhookTimeOut(t *testing.T) {
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(release) })
	d := deliverer(t, Config{AllowPrivate: true, Timeout: 50 * time.Millisecond})
	err := d.Deliver(context.Background(), task(t, machine.Subscription{Event: "*", URL: srv.URL}))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, "later", verdict(err))
}

func TestWebhookRefused(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close() // nobody listens
	d := deliverer(t, Config{AllowPrivate: true})
	err := d.Deliver(context.Background(), task(t, machine.Subscription{Event: "*", URL: srv.URL + "/token-in-the-path"}))
	require.Equal(t, "later", verdict(err))
	require.NotContains(t, err.Error(), "token")

	for want, s := range map[string]machine.Subscription{
		`secret "gone"`: {Event: "*", URL: "https://example.com", Secret: "gone"},
		"no host":       {Event: "*", URL: "https:///x"},
		"not parse":     {Event: "*", URL: "https://exa mple.com"},
	} {
		err := d.Deliver(context.Background(), task(t, s))
		require.ErrorContains(t, err, want)
		require.Equal(t, "never", verdict(err), want)
	}
	bad := with(t, task(t, machine.Subscription{Event: "*", URL: srv.URL}), func(n *machine.Delivery) { n.ID = "a\r\nx: y" })
	require.Equal(t, "never", verdict(d.Deliver(context.Background(), bad)))
	other := with(t, task(t, machine.Subscription{Event: "*", URL: srv.URL}), func(n *machine.Delivery) { n.Subscription.URL = "gopher://x" })
	require.Equal(t, "never", verdict(d.Deliver(context.Background(), other)))
	require.Equal(t, "never", verdict(d.Deliver(context.Background(), &codecs.Task{Kind: "task"})))
}

func TestConfigIsChecked(t *testing.T) {
	for want, cfg := range map[string]Config{
		"base64":           {Secrets: map[string]string{"a": "whsec_?"}},
		"at least 24":      {Secrets: map[string]string{"a": "short"}},
		"no program":       {Commands: map[string][]string{"a": nil}},
		"smtp":             {SMTP: SMTP{Addr: "nowhere", From: "a@example.com"}},
		"from":             {SMTP: SMTP{Addr: "h:25", From: "nobody"}},
		`template "broken`: {Templates: map[string]Template{"broken": {Subject: "{{"}}},
		"time-out":         {Timeout: -1},
	} {
		_, err := New(cfg)
		require.ErrorContains(t, err, want)
	}
}
