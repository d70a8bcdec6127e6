package notify

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"text/template"

	"github.com/quiesce/quiesce/codecs"
	machine "github.com/quiesce/quiesce/processors/notify"
)

// Deliverer delivers notifications. It can be used by any number of goroutines.
type Deliverer struct {
	cfg       Config
	http      *http.Client
	secrets   map[string][]byte
	templates map[string]*mailTemplate
}

type mailTemplate struct{ subject, body *template.Template }

// New checks the configuration.
func New(cfg Config) (*Deliverer, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("notifications: %w", err)
	}
	d := &Deliverer{cfg: cfg, http: client(cfg), secrets: map[string][]byte{}, templates: map[string]*mailTemplate{}}
	for name, s := range cfg.Secrets {
		key, err := parseSecret(s)
		if err != nil {
			return nil, fmt.Errorf("notifications: secret %s: %w", name, err)
		}
		d.secrets[name] = key
	}
	for name, t := range cfg.Templates {
		if err := d.parse(name, t); err != nil {
			return nil, err
		}
	}
	if _, ok := d.templates[""]; !ok {
		if err := d.parse("", builtin); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Close ends idle connections.
func (d *Deliverer) Close() { d.http.CloseIdleConnections() }

// Deliver makes one attempt. A task that is no delivery is an error that is not retryable, as is everything that Error
// does not call so.
func (d *Deliverer) Deliver(ctx context.Context, t *codecs.Task) error {
	n, err := machine.ReadDelivery(t)
	if err != nil {
		return never(err)
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	scheme, rest, _ := strings.Cut(n.Subscription.URL, ":")
	switch scheme {
	case "https", "http":
		err = d.webhook(ctx, n)
	case "mailto":
		err = d.mail(ctx, n, rest)
	case "exec":
		err = d.command(ctx, n, rest)
	default:
		err = never(fmt.Errorf("scheme %q is not known", scheme))
	}
	if err != nil {
		return fmt.Errorf("%s %s to %s: %w", n.Type, n.ID, shown(n.Subscription.URL), err)
	}
	return nil
}
