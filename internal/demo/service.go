package demo

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/processors/stage"
)

// ServiceConfig names one service of the DAG and where it runs. Stage, Input and Bootstrap are required.
type ServiceConfig struct {
	Stage     string
	Input     string // folder that paths are relative to
	Bootstrap []string
	Prefix    string // deployment. Default: that of package codecs
	// InstanceID is a static group member id: a restart then moves no partitions. "" = none.
	InstanceID string
	DataDir    string    // of the report's table. Default: that of package processors
	Options    []kgo.Opt // more options of the client (TLS, SASL)
	Log        *slog.Logger
}

// Validate reports a stage that the DAG does not have.
func (c ServiceConfig) Validate() error {
	if !slices.Contains(order, c.Stage) {
		return fmt.Errorf("service %q: one of %s", c.Stage, strings.Join(order, ", "))
	}
	return nil
}

// Service runs one service of the DAG as a process of its own does, until ctx ends.
func Service(ctx context.Context, cfg ServiceConfig) error {
	topo, err := Topology(0)
	if err != nil {
		return err
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	opts := cfg.Options
	if cfg.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(cfg.InstanceID))
	}
	s := &services{root: cfg.Input}
	run := stage.Config{Topology: topo, Stage: cfg.Stage, Bootstrap: strings.Join(cfg.Bootstrap, ","), Prefix: cfg.Prefix, Options: opts, Log: cfg.Log}
	if cfg.Stage == StageReport {
		run.Options = cfg.Options
		return runReport(ctx, reportGroup(run, cfg.DataDir, cfg.InstanceID))
	}
	run.Handler = s.handler(cfg.Stage)
	return stage.Run(ctx, run)
}
