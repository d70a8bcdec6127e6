package notify

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"time"
)

// Config says what a Deliverer may do.
type Config struct {
	// Secrets sign webhooks, by the name that a subscription gives: whsec_ and base64, or any text of 24 bytes or more.
	// Default: none.
	Secrets map[string]string
	// AllowPrivate lets webhooks go to private, loopback and link-local addresses, and over plain http. Default false.
	AllowPrivate bool
	// Timeout of one attempt. Default 30 s.
	Timeout time.Duration
	// UserAgent of webhooks. Default quiesce.
	UserAgent string
	// TLS of webhooks. Default: the system's roots.
	TLS *tls.Config
	// SMTP is the mail server. Default: none, mail is refused.
	SMTP SMTP
	// Templates of mails, by the name that a subscription gives. Default: none but the built-in one.
	Templates map[string]Template
	// Commands that exec: subscriptions may run, by name: program and arguments. Default: none.
	Commands map[string][]string
	// Now is the wall clock of the signatures. Default time.Now.
	Now func() time.Time
}

// WithDefaults returns c with every unset field at its documented default.
func (c Config) WithDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	if c.UserAgent == "" {
		c.UserAgent = "quiesce"
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Validate reports every field that cannot work.
func (c Config) Validate() error {
	var errs []error
	if c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("time-out %s", c.Timeout))
	}
	for name, s := range c.Secrets {
		if _, err := parseSecret(s); err != nil {
			errs = append(errs, fmt.Errorf("secret %s: %w", name, err))
		}
	}
	for name, argv := range c.Commands {
		if len(argv) == 0 || argv[0] == "" {
			errs = append(errs, fmt.Errorf("command %s: no program", name))
		}
	}
	if c.SMTP.Addr != "" {
		if _, _, err := net.SplitHostPort(c.SMTP.Addr); err != nil {
			errs = append(errs, fmt.Errorf("smtp: %w", err))
		}
		if _, err := mail.ParseAddress(c.SMTP.From); err != nil {
			errs = append(errs, fmt.Errorf("smtp from %q: %w", c.SMTP.From, err))
		}
	}
	return errors.Join(errs...)
}
