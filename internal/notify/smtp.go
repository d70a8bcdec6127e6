package notify

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/wneessen/go-mail"
)

// SMTP is how to send mail.
type SMTP struct {
	// Addr is the server, host:port. "" = no mail.
	Addr string
	// From is the sender's address. Required.
	From string
	// User and Password log in, after STARTTLS. Default: no login.
	User     string
	Password string
	// Plain allows a connection without TLS; else STARTTLS is required. Default false.
	Plain bool
	// TLS is the client's configuration. Default: the system's roots.
	TLS *tls.Config
	// Timeout of one mail. Default 30 s.
	Timeout time.Duration
}

// Send sends one message over a connection of its own. Retryable tells whether to try again.
func (s SMTP) Send(ctx context.Context, m *mail.Msg) error {
	c, err := s.client()
	if err != nil {
		return never(err)
	}
	conn, err := c.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return later(err)
	}
	defer func() { _ = c.CloseWithSMTPClient(conn) }() // the mail is taken or not by then
	if err := c.SendWithSMTPClient(conn, m); err != nil {
		var e *mail.SendError
		if errors.As(err, &e) && e.ErrorCode() >= 500 {
			return never(err)
		}
		return later(err)
	}
	return nil
}

// client makes a client of the server; it has no connection yet.
func (s SMTP) client() (*mail.Client, error) {
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("smtp port %q", port)
	}
	if s.Timeout == 0 {
		s.Timeout = 30 * time.Second
	}
	opts := []mail.Option{mail.WithPort(number), mail.WithTimeout(s.Timeout), mail.WithTLSPolicy(mail.TLSMandatory), mail.WithoutNoop()}
	if s.Plain {
		opts = append(opts, mail.WithTLSPolicy(mail.TLSOpportunistic))
	}
	if s.TLS != nil {
		opts = append(opts, mail.WithTLSConfig(s.TLS))
	}
	if s.User != "" {
		opts = append(opts, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(s.User), mail.WithPassword(s.Password))
	}
	return mail.NewClient(host, opts...)
}
