package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"

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
	server := d.cfg.SMTP
	server.Timeout = d.cfg.Timeout
	return server.Send(ctx, m)
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
