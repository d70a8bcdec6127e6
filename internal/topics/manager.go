package topics

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Config of a Manager.
type Config struct {
	// Client reaches the brokers. Required; it stays the caller's.
	Client *kgo.Client
	// Ready bounds how long Apply waits for the leaders of new partitions. Default 60 s.
	Ready time.Duration
	// Poll is how often it looks. Default 50 ms.
	Poll time.Duration
}

// WithDefaults returns the configuration with absent fields filled in.
func (c Config) WithDefaults() Config {
	if c.Ready == 0 {
		c.Ready = time.Minute
	}
	if c.Poll == 0 {
		c.Poll = 50 * time.Millisecond
	}
	return c
}

// Validate reports what is missing.
func (c Config) Validate() error {
	if c.Client == nil {
		return errors.New("topics: a client is required")
	}
	if c.Ready < 0 || c.Poll < 0 {
		return fmt.Errorf("topics: ready %v and poll %v must not be negative", c.Ready, c.Poll)
	}
	return nil
}

// Manager compares topics with their specs and creates missing ones. Its methods may be called from any goroutine.
type Manager struct {
	cfg   Config
	admin *kadm.Client
}

// New returns a manager.
func New(cfg Config) (*Manager, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Manager{cfg: cfg, admin: kadm.NewClient(cfg.Client)}, nil
}
