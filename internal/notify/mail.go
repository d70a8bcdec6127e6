package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"

	"github.com/wneessen/go-mail"

	machine "github.com/quiesce/quiesce/processors/notify"
)

const maxRecipients = 20

// mail sends one mail. to is what stands behind mailto: in the URL.
func (d *Deliverer) mail(ctx context.Context, n *machine.Delivery, to string) error {
	if d.cfg.SMTP.Addr == "" {
		return never(errors.New("no mail server is configured"))
	}
	m, err := d.compose(n, to)
	if err != nil {
		return never(err)
	}
	c, err := d.smtp()
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

func (d *Deliverer) compose(n *machine.Delivery, to string) (*mail.Msg, error) {
	to, err := url.PathUnescape(to)
	if err != nil {
		return nil, errors.New("the recipients do not parse")
	}
	subject, body, err := d.render(n)
	if err != nil {
		return nil, err
	}
	m := mail.NewMsg()
	if err := m.From(d.cfg.SMTP.From); err != nil {
		return nil, err
	}
	if err := m.ToFromString(to); err != nil {
		return nil, fmt.Errorf("recipients: %w", err)
	}
	if n := len(m.GetTo()); n > maxRecipients {
		return nil, fmt.Errorf("%d recipients, at most %d", n, maxRecipients)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", n.ID, to, n.Subscription.Template))
	m.SetMessageIDWithValue(hex.EncodeToString(sum[:16]) + "@quiesce")
	m.SetDateWithValue(d.cfg.Now())
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.Subject(subject)
	m.SetBodyString(mail.TypeTextPlain, body)
	return m, nil
}

// smtp makes a client of the mail server; it has no connection yet.
func (d *Deliverer) smtp() (*mail.Client, error) {
	s := d.cfg.SMTP
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("smtp port %q", port)
	}
	opts := []mail.Option{mail.WithPort(number), mail.WithTimeout(d.cfg.Timeout), mail.WithTLSPolicy(mail.TLSMandatory), mail.WithoutNoop()}
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
