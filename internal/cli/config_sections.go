package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/quiesce/quiesce/internal/node"
	deliver "github.com/quiesce/quiesce/internal/notify"
	"github.com/quiesce/quiesce/processors/notify"
)

// sections are the keys of the configuration file that are no flags:
//
//	notify:                                       # who wants to know what
//	  - {event: job.*, url: "https://hooks.example.com/quiesce", secret: ops}
//	  - {event: batch.failed, url: "mailto:ops@example.com", labels: {team: billing}}
//	delivery:                                     # how the role notifier delivers
//	  secrets: {ops: $OPS_SECRET}                 # a value that begins with $ is read from the environment
//	  smtp: {addr: "mail.example.com:587", from: quiesce@example.com, user: quiesce, password: $SMTP_PASSWORD}
//	  templates: {short: {subject: "{{.Type}}", body: "{{.Subject}}"}}
//	  commands: {page: [/usr/local/bin/page]}
//	  allow_private: false
//	  timeout: 30s
type sections struct {
	Notify   []notify.Subscription `json:"notify"`
	Delivery delivery              `json:"delivery"`
}

type delivery struct {
	Secrets      map[string]string   `json:"secrets"`
	SMTP         smtp                `json:"smtp"`
	Templates    map[string]template `json:"templates"`
	Commands     map[string][]string `json:"commands"`
	AllowPrivate bool                `json:"allow_private"`
	Timeout      string              `json:"timeout"`
}

type smtp struct {
	Addr     string `json:"addr"`
	From     string `json:"from"`
	User     string `json:"user"`
	Password string `json:"password"`
	Plain    bool   `json:"plain"`
}

type template struct {
	Subject string `json:"subject"`
	Body    string `json:"body"`
}

// isSection says whether a key of the file is one of them.
func isSection(key string) bool { return key == "notify" || key == "delivery" }

// readSections reads them out of a file. A key that is not known is an error: a typing error must not pass for a default.
func readSections(file map[string]any) (*sections, error) {
	found := map[string]any{}
	for key, v := range file {
		if isSection(key) {
			found[key] = v
		}
	}
	b, err := json.Marshal(found)
	if err != nil {
		return nil, err
	}
	s := &sections{}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return nil, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return s, nil
}

// notify returns what the role notifier is configured with.
func (s *sections) notify() (node.Notify, error) {
	d := s.Delivery
	n := node.Notify{Subscriptions: s.Notify, Delivery: deliver.Config{AllowPrivate: d.AllowPrivate, Commands: d.Commands,
		Secrets: map[string]string{}, Templates: map[string]deliver.Template{},
		SMTP: deliver.SMTP{Addr: d.SMTP.Addr, From: d.SMTP.From, User: d.SMTP.User, Plain: d.SMTP.Plain}}}
	var err error
	if n.Delivery.SMTP.Password, err = fromEnvironment("delivery.smtp.password", d.SMTP.Password); err != nil {
		return n, err
	}
	for name, v := range d.Secrets {
		if n.Delivery.Secrets[name], err = fromEnvironment("delivery.secrets."+name, v); err != nil {
			return n, err
		}
	}
	for name, t := range d.Templates {
		n.Delivery.Templates[name] = deliver.Template{Subject: t.Subject, Body: t.Body}
	}
	if d.Timeout != "" {
		if n.Delivery.Timeout, err = time.ParseDuration(d.Timeout); err != nil {
			return n, fmt.Errorf("delivery.timeout: %w", err)
		}
	}
	return n, nil
}

// fromEnvironment reads a value that names a variable.
func fromEnvironment(key, v string) (string, error) {
	name, ok := strings.CutPrefix(v, "$")
	if !ok {
		return v, nil
	}
	v, ok = os.LookupEnv(name)
	if !ok || v == "" {
		return "", fmt.Errorf("%s: the environment variable %s is not set", key, name)
	}
	return v, nil
}
