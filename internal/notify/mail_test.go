package notify

import (
	"context"
	"io"
	"net"
	"net/mail"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	machine "github.com/quiesce/quiesce/processors/notify"
)

// post is a mail server that keeps what it takes.
type post struct {
	mu     sync.Mutex
	refuse error // of the recipients
	mails  []letter
}

type letter struct {
	from string
	to   []string
	text string
}

type session struct {
	p *post
	l letter
}

func (p *post) NewSession(*smtp.Conn) (smtp.Session, error)    { return &session{p: p}, nil }
func (s *session) Reset()                                      { s.l = letter{} }
func (s *session) Logout() error                               { return nil }
func (s *session) Mail(from string, _ *smtp.MailOptions) error { s.l.from = from; return nil }
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.l.to = append(s.l.to, to)
	return s.p.refuse
}
func (s *session) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	s.l.text = string(b)
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.p.mails = append(s.p.mails, s.l)
	return err
}

func mailServer(t *testing.T) (*post, string) {
	t.Helper()
	p := &post{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := smtp.NewServer(p)
	srv.Domain = "localhost"
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { require.NoError(t, srv.Close()); <-done })
	return p, l.Addr().String()
}

func TestMail(t *testing.T) {
	p, addr := mailServer(t)
	d := deliverer(t, Config{SMTP: SMTP{Addr: addr, From: "quiesce@example.com", Plain: true}})
	n := task(t, machine.Subscription{Event: "*", URL: "mailto:a@example.com,b@example.com"})
	require.NoError(t, d.Deliver(context.Background(), n))
	require.NoError(t, d.Deliver(context.Background(), n))
	require.Len(t, p.mails, 2)
	l := p.mails[0]
	require.Equal(t, "quiesce@example.com", l.from)
	require.Equal(t, []string{"a@example.com", "b@example.com"}, l.to)
	m, err := mail.ReadMessage(strings.NewReader(l.text))
	require.NoError(t, err)
	require.Equal(t, "b-1: batch.failed", m.Header.Get("Subject"))
	body, err := io.ReadAll(m.Body)
	require.NoError(t, err)
	for _, want := range []string{"batch.failed of b-1 at 2023-11-14 22:13:20 UTC", "state: failed", "reason: 2 of 3 failed", "counts: failed 2 total 3", "event b-1/r/1/terminal"} {
		require.Contains(t, string(body), want)
	}
	again, err := mail.ReadMessage(strings.NewReader(p.mails[1].text))
	require.NoError(t, err)
	require.Equal(t, m.Header.Get("Message-Id"), again.Header.Get("Message-Id"), "a mail sent twice has one id")
	require.NotEmpty(t, m.Header.Get("Message-Id"))
}

func TestMailTemplate(t *testing.T) {
	p, addr := mailServer(t)
	d := deliverer(t, Config{SMTP: SMTP{Addr: addr, From: "quiesce@example.com", Plain: true},
		Templates: map[string]Template{"short": {Subject: "{{.Data.reason}}\r\nBcc: x@example.com", Body: "run {{.Data.run}}"}}})
	require.NoError(t, d.Deliver(context.Background(), task(t, machine.Subscription{Event: "*", URL: "mailto:a@example.com", Template: "short"})))
	m, err := mail.ReadMessage(strings.NewReader(p.mails[0].text))
	require.NoError(t, err)
	require.Equal(t, "2 of 3 failed Bcc: x@example.com", m.Header.Get("Subject"), "a subject is one line")
	require.Empty(t, m.Header.Get("Bcc"))
	require.Len(t, p.mails[0].to, 1)

	err = d.Deliver(context.Background(), task(t, machine.Subscription{Event: "*", URL: "mailto:a@example.com", Template: "gone"}))
	require.ErrorContains(t, err, `template "gone"`)
	require.Equal(t, "never", verdict(err))
}

func TestMailWithoutData(t *testing.T) {
	p, addr := mailServer(t)
	d := deliverer(t, Config{SMTP: SMTP{Addr: addr, From: "quiesce@example.com", Plain: true}})
	require.NoError(t, d.Deliver(context.Background(), with(t, task(t, machine.Subscription{Event: "*", URL: "mailto:a@example.com"}),
		func(n *machine.Delivery) { n.Data, n.Cut = nil, true })))
	require.Contains(t, p.mails[0].text, "event b-1/r/1/terminal")
}

func TestMailRefused(t *testing.T) {
	p, addr := mailServer(t)
	cfg := Config{SMTP: SMTP{Addr: addr, From: "quiesce@example.com", Plain: true}}
	n := task(t, machine.Subscription{Event: "*", URL: "mailto:a@example.com"})
	for code, want := range map[int]string{550: "never", 450: "later"} {
		p.refuse = &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, 1, 1}, Message: "no"}
		require.Equal(t, want, verdict(deliverer(t, cfg).Deliver(context.Background(), n)), code)
	}
	p.refuse = nil
	for _, to := range []string{"nobody", "a@example.com?bcc=x@example.com", strings.Repeat("a@example.com,", 20) + "b@example.com"} {
		require.Equal(t, "never", verdict(deliverer(t, cfg).Deliver(context.Background(), task(t, machine.Subscription{Event: "*", URL: "mailto:" + to}))), to)
	}
	require.Equal(t, "never", verdict(deliverer(t, Config{}).Deliver(context.Background(), n)), "no server is configured")
	cfg.SMTP.Plain = false
	require.Equal(t, "later", verdict(deliverer(t, cfg).Deliver(context.Background(), n)), "the server has no TLS")
	require.Empty(t, p.mails)
	cfg.SMTP.Addr = "127.0.0.1:1"
	require.Equal(t, "later", verdict(deliverer(t, cfg).Deliver(context.Background(), n)), "nobody listens")
}
