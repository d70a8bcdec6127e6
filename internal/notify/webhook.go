package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	machine "github.com/quiesce/quiesce/processors/notify"
)

const maxAnswer = 512 // bytes of an answer that are shown

// client makes the HTTP client of webhooks: no proxy, no redirects, and an eye on every address.
func client(cfg Config) *http.Client {
	dial := &net.Dialer{Timeout: cfg.Timeout}
	if !cfg.AllowPrivate {
		dial.Control = onlyPublic
	}
	return &http.Client{
		Transport: &http.Transport{DialContext: dial.DialContext, TLSClientConfig: cfg.TLS, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: cfg.Timeout, MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// message is the body of a webhook.
type message struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Timestamp string          `json:"timestamp"`
	Subject   string          `json:"subject"`
	Data      json.RawMessage `json:"data,omitempty"`
	Cut       bool            `json:"cut,omitempty"`
}

func (d *Deliverer) webhook(ctx context.Context, n *machine.Delivery) error {
	req, err := d.request(ctx, n)
	if err != nil {
		return never(err)
	}
	resp, err := d.http.Do(req)
	if err != nil {
		var refused *Error
		if errors.As(err, &refused) {
			return refused
		}
		var u *url.Error // repeats the URL, which may hold a token
		if errors.As(err, &u) {
			err = u.Err
		}
		return later(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return judge(resp, answer)
}

func (d *Deliverer) request(ctx context.Context, n *machine.Delivery) (*http.Request, error) {
	u, err := url.Parse(n.Subscription.URL)
	switch {
	case err != nil:
		return nil, errors.New("the URL does not parse")
	case u.Host == "":
		return nil, errors.New("the URL has no host")
	case strings.ContainsFunc(n.ID, unicode.IsControl):
		return nil, fmt.Errorf("event id %q cannot stand in a header", n.ID)
	case u.Scheme == "http" && !d.cfg.AllowPrivate:
		return nil, errors.New("plain http is for private networks, which are not allowed")
	}
	body, err := json.Marshal(message{n.ID, n.Type, time.UnixMilli(n.Time).UTC().Format("2006-01-02T15:04:05.000Z07:00"), n.Subject, n.Data, n.Cut})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	at := strconv.FormatInt(d.cfg.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", d.cfg.UserAgent)
	req.Header.Set("Webhook-Id", n.ID)
	req.Header.Set("Webhook-Timestamp", at)
	if name := n.Subscription.Secret; name != "" {
		key, ok := d.secrets[name]
		if !ok {
			return nil, fmt.Errorf("secret %q is not known here", name)
		}
		req.Header.Set("Webhook-Signature", sign(key, n.ID, at, body))
	}
	return req, nil
}

// judge tells a delivery from a failure by the status.
func judge(resp *http.Response, answer []byte) error {
	code := resp.StatusCode
	if code >= 200 && code < 300 {
		return nil
	}
	e := &Error{Err: fmt.Errorf("status %d: %q", code, strings.ToValidUTF8(string(answer), "?"))}
	switch {
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code >= 500:
		e.Retry = true
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
			e.After = time.Duration(min(s, 24*60*60)) * time.Second
		}
	}
	return e
}

// shown is a URL without what may be secret: user, path and query.
func shown(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "a URL that does not parse"
	}
	if u.Host == "" {
		return u.Scheme + ":" + u.Opaque
	}
	return u.Scheme + "://" + u.Host
}
