package cli

import (
	"crypto/tls"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors"
)

// connection is how a command reaches Kafka.
type connection struct {
	bootstrap []string
	prefix    string
	tls       bool
	mechanism string
	user      string
	password  string
}

// SASL mechanisms.
const (
	saslPlain  = "PLAIN"
	saslSHA256 = "SCRAM-SHA-256"
	saslSHA512 = "SCRAM-SHA-512"
)

// flags gives cmd the flags of a connection.
func (c *connection) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&c.bootstrap, "bootstrap-server", []string{"127.0.0.1:9092"}, "Kafka brokers to ask first, host:port")
	f.StringVar(&c.prefix, "prefix", codecs.DefaultPrefix, "name of the deployment: its topics and groups begin with it")
	f.BoolVar(&c.tls, "tls", false, "talk TLS to the brokers")
	f.StringVar(&c.mechanism, "sasl-mechanism", "", "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
	f.StringVar(&c.user, "sasl-user", "", "user name")
	f.StringVar(&c.password, "sasl-password", "", "password (better: QUIESCE_SASL_PASSWORD)")
}

// validate reports what cannot work, as a usage error.
func (c *connection) validate(cmd *cobra.Command) error {
	if len(c.bootstrap) == 0 || c.bootstrap[0] == "" {
		return usage(cmd, "--bootstrap-server: name at least one broker")
	}
	if err := codecs.ValidID("prefix", c.prefix); err != nil {
		return usage(cmd, "--prefix: %w", err)
	}
	switch c.mechanism {
	case "", saslPlain, saslSHA256, saslSHA512:
	default:
		return usage(cmd, "--sasl-mechanism %q: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", c.mechanism)
	}
	return nil
}

// options are the options of a client that is made and used by a command.
func (c *connection) options() []kgo.Opt {
	return append(c.auth(), kgo.SeedBrokers(c.bootstrap...), kgo.RequestRetries(5), kgo.RetryTimeout(15*time.Second))
}

// auth are the options of any client that talks to these brokers.
func (c *connection) auth() []kgo.Opt {
	var opts []kgo.Opt
	if t := c.tlsConfig(); t != nil {
		opts = append(opts, kgo.DialTLSConfig(t))
	}
	if m := c.sasl(); m != nil {
		opts = append(opts, kgo.SASL(m))
	}
	return opts
}

func (c *connection) tlsConfig() *tls.Config {
	if !c.tls {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12}
}

// security says the same to the runtime.
func (c *connection) security() processors.Security {
	return processors.Security{TLS: c.tlsConfig(), Mechanism: c.mechanism, User: c.user, Password: c.password}
}

func (c *connection) sasl() sasl.Mechanism {
	switch c.mechanism {
	case saslPlain:
		return plain.Auth{User: c.user, Pass: c.password}.AsMechanism()
	case saslSHA256:
		return scram.Auth{User: c.user, Pass: c.password}.AsSha256Mechanism()
	case saslSHA512:
		return scram.Auth{User: c.user, Pass: c.password}.AsSha512Mechanism()
	}
	return nil
}

// client connects. The caller closes it.
func (c *connection) client(more ...kgo.Opt) (*kgo.Client, error) {
	client, err := kgo.NewClient(append(c.options(), more...)...)
	if err != nil {
		return nil, fmt.Errorf("connect to %v: %w", c.bootstrap, err)
	}
	return client, nil
}
