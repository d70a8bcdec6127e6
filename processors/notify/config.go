package notify

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/quiesce/quiesce/codecs"
)

// Bounds. The deliveries of one event must fit into the outputs of one step.
const (
	MaxSubscriptions = 64 // in the configuration
	maxOwn           = 4  // that an event brings along
	maxURL           = 2048
	maxData          = 16 << 10
)

// Config of the machine. Every instance of a deployment uses the same.
type Config struct {
	// Subscriptions are matched to every event. Default: none.
	Subscriptions []Subscription
	// Queue takes the deliveries. Default notify.
	Queue string
	// Retry of a delivery. Default: 8 attempts, the first again after 1 s, then 4 times as long each, at most 64 s.
	Retry *codecs.Retry
	// AttemptTimeout bounds one attempt, in ms. Default 30,000.
	AttemptTimeout int64
}

// Subscription says who wants to know what.
type Subscription struct {
	Event    string            `json:"event"`              // name or glob: batch.completed, job.*, *
	URL      string            `json:"url"`                // https://, http://, mailto:a@b,c@d or exec:name
	Template string            `json:"template,omitempty"` // name of a mail template; "" = the built-in one
	Secret   string            `json:"secret,omitempty"`   // name of the signing secret of a webhook; "" = unsigned
	Labels   map[string]string `json:"labels,omitempty"`   // that the event must have
	JobType  string            `json:"job_type,omitempty"` // "" = any, and batches without a job
}

// WithDefaults returns c with every unset field at its documented default.
func (c Config) WithDefaults() Config {
	if c.Queue == "" {
		c.Queue = "notify"
	}
	if c.Retry == nil {
		c.Retry = &codecs.Retry{Attempts: 8, First: 1000, Factor: 4, Max: 64_000}
	}
	if c.AttemptTimeout == 0 {
		c.AttemptTimeout = 30_000
	}
	return c
}

// Validate reports every field that cannot work.
func (c Config) Validate() error {
	var errs []error
	if n := len(c.Subscriptions); n > MaxSubscriptions {
		errs = append(errs, fmt.Errorf("%d subscriptions, at most %d", n, MaxSubscriptions))
	}
	for i, s := range c.Subscriptions {
		if err := s.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("subscription %d: %w", i, err))
		}
	}
	if err := codecs.ValidID("queue", c.Queue); err != nil {
		errs = append(errs, err)
	}
	if c.AttemptTimeout < 0 {
		errs = append(errs, fmt.Errorf("attempt time-out %d ms", c.AttemptTimeout))
	}
	return errors.Join(errs...)
}

// Validate reports what is wrong with a subscription of the configuration.
func (s Subscription) Validate() error {
	if err := s.valid(); err != nil {
		return err
	}
	for _, name := range codecs.TypeNames() {
		if s.names(name) {
			return nil
		}
	}
	return fmt.Errorf("event %q: matches no event", s.Event)
}

// schemes of a URL.
var schemes = []string{"https://", "http://", "mailto:", "exec:"}

func (s Subscription) valid() error {
	if _, err := path.Match(s.Event, ""); err != nil || s.Event == "" {
		return fmt.Errorf("event %q: not a name or glob", s.Event)
	}
	if len(s.URL) > maxURL {
		return fmt.Errorf("url: %d bytes, at most %d", len(s.URL), maxURL)
	}
	for _, p := range schemes {
		if rest, ok := strings.CutPrefix(s.URL, p); ok && rest != "" {
			return nil
		}
	}
	return fmt.Errorf("url %q: not one of https, http, mailto, exec", s.URL)
}
