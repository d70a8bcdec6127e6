package invoices

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/notify"
	"github.com/quiesce/quiesce/internal/tail"
	"github.com/quiesce/quiesce/processors/worker"
)

// ServiceConfig says which queue a worker works off, and how. All but Prefix, Options and the faults are required.
type ServiceConfig struct {
	// Name of the queue without the job's: prepare, split, render or report.
	Name string
	// Bootstrap are the brokers to ask first.
	Bootstrap []string
	// Prefix is the deployment. Default: that of package codecs.
	Prefix string
	// Out is the folder that all workers share; each job has one below it.
	Out string
	// SMTP takes the invoices.
	SMTP notify.SMTP
	// Concurrency is how many sub-jobs it works on at once. Default: that of package worker.
	Concurrency int
	// InstanceID is a static group member id: a restart then moves no partitions. "" = none.
	InstanceID string
	// Reverse makes split list the customers backwards: another list than that of a worker without it.
	Reverse bool
	// KillAfter ends the process as kill -9 does, once: split after so many sub-jobs were listed, render after so many mails
	// and before the receipt of the last one. 0 = never.
	KillAfter int
	// Options are more options of the clients (TLS, SASL).
	Options []kgo.Opt
	// Log gets what goes wrong.
	Log *slog.Logger
}

// Services are the names that ServiceConfig knows.
func Services() []string { return []string{"prepare", "split", "render", "report"} }

// Validate reports what is missing.
func (c ServiceConfig) Validate() error {
	switch {
	case !slices.Contains(Services(), c.Name):
		return fmt.Errorf("worker %q: one of %s", c.Name, strings.Join(Services(), ", "))
	case c.Out == "":
		return errors.New("no folder for the invoices")
	case c.Name == "render" && c.SMTP.Addr == "":
		return errors.New("no mail server")
	case c.Concurrency < 0 || c.KillAfter < 0:
		return errors.New("a negative number")
	}
	return nil
}

// Service runs one worker as a process of its own does, until ctx ends.
func Service(ctx context.Context, cfg ServiceConfig) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("invoices: %w", err)
	}
	run := cfg.worker()
	run.Bootstrap, run.Prefix, run.Options = strings.Join(cfg.Bootstrap, ","), cfg.Prefix, slices.Clone(cfg.Options)
	if cfg.InstanceID != "" {
		run.Options = append(run.Options, kgo.InstanceID(cfg.InstanceID))
	}
	return worker.Run(ctx, run)
}

// work are the handlers of one worker.
type work struct {
	cfg   ServiceConfig
	topic tail.Config
	fault fault
}

// worker says how package worker runs it; what the caller's node knows is not filled in.
func (c ServiceConfig) worker() worker.Config {
	if c.Prefix == "" {
		c.Prefix = codecs.DefaultPrefix
	}
	w := &work{cfg: c, topic: tail.Config{Bootstrap: c.Bootstrap, Prefix: c.Prefix, Options: c.Options}}
	w.fault.kill = int64(c.KillAfter)
	run := worker.Config{Queue: "invoices." + c.Name, Concurrency: c.Concurrency, Log: c.Log}
	switch c.Name {
	case "prepare":
		run.Handler = w.prepare
	case "split":
		run.Splitter = w.split
	case "render":
		run.Handler = w.render
	case "report":
		run.Handler = w.report
	}
	return run
}
