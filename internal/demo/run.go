package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker"
	"github.com/quiesce/quiesce/internal/node"
	"github.com/quiesce/quiesce/internal/tail"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/feeder"
	"github.com/quiesce/quiesce/processors/stage"
	"github.com/quiesce/quiesce/topology"
)

// Run does the whole job in one process and compares the result with the plain loop.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg, err := cfg.WithDefaults()
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	paths, skipped, err := Files(cfg.Input)
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	if cfg.Dir == "" {
		if cfg.Dir, err = os.MkdirTemp("", "quiesce-demo"); err != nil {
			return nil, fmt.Errorf("demo: %w", err)
		}
		defer os.RemoveAll(cfg.Dir)
	}
	d, err := newDeployment(cfg, paths)
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	if err := d.start(ctx); err != nil {
		return nil, fmt.Errorf("demo: %w", errors.Join(err, d.stop()))
	}
	res, err := d.job(ctx)
	if err == nil {
		res.Skipped = skipped
		cfg.Done(res)
		if cfg.Keep {
			<-ctx.Done()
		}
	}
	if err := errors.Join(err, d.stop()); err != nil {
		return res, fmt.Errorf("demo: %w", err)
	}
	return res, nil
}

// deployment is everything that runs: broker, controller and sidecar, and the four services.
type deployment struct {
	cfg      Config
	paths    []string
	topo     *topology.Topology
	services services
	counters map[string]*stage.Counters

	broker *broker.Broker
	node   *node.Node
	cancel context.CancelFunc
	group  *errgroup.Group
}

func newDeployment(cfg Config, paths []string) (*deployment, error) {
	topo, err := Topology(cfg.Partitions)
	if err != nil {
		return nil, err
	}
	d := &deployment{cfg: cfg, paths: paths, topo: topo, counters: map[string]*stage.Counters{}}
	d.services.root = cfg.Input
	for name := range d.topo.Stages {
		d.counters[name] = &stage.Counters{}
	}
	return d, nil
}

func (d *deployment) start(ctx context.Context) (err error) {
	if d.broker, err = broker.Start(broker.Config{Log: d.cfg.Log}); err != nil {
		return err
	}
	d.node, err = node.Start(ctx, node.Config{Roles: []string{node.RoleController, node.RoleSidecar}, Bootstrap: []string{d.broker.Bootstrap()}, Topologies: []*topology.Topology{d.topo},
		Partitions: d.cfg.Partitions, HTTP: node.HTTP{Listen: d.cfg.Listen}, DataDir: filepath.Join(d.cfg.Dir, "controller"), Log: d.cfg.Log})
	if err != nil {
		return err
	}
	ctx, d.cancel = context.WithCancel(ctx)
	d.group, ctx = errgroup.WithContext(ctx)
	for name := range d.topo.Stages {
		d.group.Go(func() error { return d.service(ctx, name) })
	}
	return nil
}

// service runs one service until ctx ends.
func (d *deployment) service(ctx context.Context, name string) error {
	cfg := stage.Config{Topology: d.topo, Stage: name, Bootstrap: d.broker.Bootstrap(), Counters: d.counters[name], Log: d.cfg.Log}
	if name == StageReport {
		group := d.reportGroup()
		group.Callback = func(ctx processors.Context, value any) {
			defer d.services.touch()
			fold(ctx, value)
		}
		return runReport(ctx, group)
	}
	cfg.Handler = d.services.handler(name)
	return stage.Run(ctx, cfg)
}

func (d *deployment) reportGroup() processors.StageGroupConfig {
	return reportGroup(stage.Config{Topology: d.topo, Stage: StageReport, Bootstrap: d.broker.Bootstrap(), Counters: d.counters[StageReport],
		Log: d.cfg.Log}, filepath.Join(d.cfg.Dir, StageReport), "")
}

// stop ends everything, services first.
func (d *deployment) stop() error {
	var errs []error
	if d.cancel != nil {
		d.cancel()
		errs = append(errs, d.group.Wait())
	}
	if d.node != nil {
		errs = append(errs, d.node.Stop())
	}
	if d.broker != nil {
		errs = append(errs, d.broker.Close())
	}
	return errors.Join(errs...)
}

// job feeds the batch, follows it to its end and collects the result.
func (d *deployment) job(ctx context.Context) (*Result, error) {
	d.cfg.Watch(d.progress())
	begin := time.Now()
	group, gctx := errgroup.WithContext(ctx)
	watch, stopWatch := context.WithCancel(gctx)
	defer stopWatch()
	var run string
	var end *ended
	group.Go(func() (err error) {
		run, err = d.feed(gctx)
		return err
	})
	group.Go(func() (err error) {
		defer stopWatch()
		end, err = follow(gctx, d.log(), d.cfg.Batch)
		return err
	})
	group.Go(func() error { d.watch(watch); return nil })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return d.result(ctx, run, begin, end)
}

// feed sends one record for each path, then the seal.
func (d *deployment) feed(ctx context.Context) (run string, err error) {
	f, err := feeder.New(feeder.Config{Topology: d.topo, Bootstrap: d.broker.Bootstrap(), Batch: d.cfg.Batch, Mode: d.cfg.Mode, Log: d.cfg.Log,
		Start: &codecs.BatchStart{Labels: map[string]string{"input": d.cfg.Input}}})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Start(ctx); err != nil {
		return "", err
	}
	for _, p := range d.paths {
		b, err := json.Marshal(File{Path: p})
		if err != nil {
			return "", err
		}
		if _, err := f.Send(ctx, []byte(p), b); err != nil {
			return "", err
		}
	}
	_, err = f.Seal(ctx)
	return f.Run(), err
}

// log is where the topics are read from.
func (d *deployment) log() tail.Config { return tail.Config{Bootstrap: []string{d.broker.Bootstrap()}} }

// watch tells how far it is, until ctx ends.
func (d *deployment) watch(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		d.cfg.Watch(d.progress())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (d *deployment) progress() Progress {
	return Progress{Sidecar: d.node.Address(), Broker: d.broker.Bootstrap(), Tasks: len(d.paths), Stages: d.handled()}
}

func (d *deployment) handled() map[string]int {
	n := map[string]int{}
	for name, c := range d.counters {
		n[name] = int(c.Total().Consumed)
	}
	return n
}

func (d *deployment) result(ctx context.Context, run string, begin time.Time, end *ended) (*Result, error) {
	res := &Result{Batch: d.cfg.Batch, Run: run, Mode: d.cfg.Mode, Input: d.cfg.Input, State: end.event.State.String(), Stages: d.handled(),
		Wall: end.at.Sub(begin), Completions: 1}
	if last := d.services.last.Load(); last > 0 {
		res.Delay = end.at.Sub(time.Unix(0, last))
	}
	failed, err := failures(ctx, d.log(), d.cfg.Batch, run, d.paths, int(end.event.Counts.GetFailed()))
	if err != nil {
		return nil, err
	}
	rows, err := readReport(ctx, d.reportGroup())
	if err != nil {
		return nil, fmt.Errorf("view of the report: %w", err)
	}
	res.Index = newIndex(len(d.paths), rows, failed)
	if res.Plain, err = Plain(ctx, d.cfg.Input); err != nil {
		return nil, fmt.Errorf("plain loop: %w", err)
	}
	res.Differences = res.Index.Differences(res.Plain)
	return res, nil
}
