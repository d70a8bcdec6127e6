package invoices

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quiesce/quiesce/internal/broker"
	"github.com/quiesce/quiesce/internal/node"
	deliver "github.com/quiesce/quiesce/internal/notify"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/client"
	"github.com/quiesce/quiesce/internal/tail"
	"github.com/quiesce/quiesce/processors/notify"
	"github.com/quiesce/quiesce/processors/stats"
	"github.com/quiesce/quiesce/processors/worker"
	"github.com/quiesce/quiesce/topology"
)

// Run does the whole job in one process and compares what it leaves with a plain loop.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("invoices: %w", err)
	}
	for _, dir := range []*string{&cfg.Out, &cfg.Dir} {
		if *dir == "" {
			temporary, err := os.MkdirTemp("", "quiesce-invoices")
			if err != nil {
				return nil, fmt.Errorf("invoices: %w", err)
			}
			defer os.RemoveAll(temporary)
			*dir = temporary
		}
	}
	d := &deployment{cfg: cfg, folder: JobFolder(cfg.Out, cfg.Job)}
	if err := errors.Join(d.orders(), d.start(ctx)); err != nil {
		return nil, fmt.Errorf("invoices: %w", errors.Join(err, d.stop()))
	}
	res, err := d.job(ctx)
	if err == nil {
		cfg.Done(res)
		if cfg.Keep {
			<-ctx.Done()
		}
	}
	if err := errors.Join(err, d.stop()); err != nil {
		return res, fmt.Errorf("invoices: %w", err)
	}
	return res, nil
}

// deployment is everything that runs: broker, all roles, four workers, mail sink, receiver of webhooks.
type deployment struct {
	cfg    Config
	folder Folder

	sink   *Sink // nil = a mail server elsewhere
	hook   *Hook
	broker *broker.Broker
	node   *node.Node
	client *client.Client
}

// orders makes up a file of orders, when none is given.
func (d *deployment) orders() error {
	if d.cfg.Orders != "" {
		full, err := filepath.Abs(d.cfg.Orders)
		d.cfg.Orders = full
		return err
	}
	d.cfg.Orders = d.folder.path("orders.csv")
	return write(d.cfg.Orders, func(w *bufio.Writer) error { return WriteOrders(w, d.cfg.Seed) })
}

func (d *deployment) start(ctx context.Context) (err error) {
	if d.cfg.SMTP.Addr == "" {
		if d.sink, err = StartSink("127.0.0.1:0", d.cfg.Busy); err != nil {
			return err
		}
		d.cfg.SMTP.Addr, d.cfg.SMTP.Plain = d.sink.Address(), true
	}
	if d.hook, err = StartHook("127.0.0.1:0"); err != nil {
		return err
	}
	if d.broker, err = broker.Start(broker.Config{Log: d.cfg.Log}); err != nil {
		return err
	}
	job, err := JobType()
	if err != nil {
		return err
	}
	bootstrap := []string{d.broker.Bootstrap()}
	d.node, err = node.Start(ctx, node.Config{
		Bootstrap: bootstrap, Partitions: 4, HTTP: node.HTTP{Listen: d.cfg.Listen}, DataDir: d.cfg.Dir, Log: d.cfg.Log,
		Jobs:    node.Jobs{Types: []*topology.JobType{job}, Queues: Queues(4)},
		Notify:  node.Notify{Subscriptions: d.subscriptions(), Delivery: deliver.Config{SMTP: d.cfg.SMTP, AllowPrivate: true}},
		Workers: d.workers(bootstrap),
	})
	if err != nil {
		return err
	}
	d.client, err = client.New(client.Config{Address: d.node.Address()})
	return err
}

// subscriptions tell the receiver of webhooks everything about jobs and steps, and the manager the end.
func (d *deployment) subscriptions() []notify.Subscription {
	subs := []notify.Subscription{{Event: "job.*", URL: d.hook.URL()}, {Event: "step.*", URL: d.hook.URL()}}
	if d.cfg.Manager != "" {
		for _, ended := range []string{"job.c*", "job.failed"} { // completed, cancelled
			subs = append(subs, notify.Subscription{Event: ended, URL: "mailto:" + d.cfg.Manager})
		}
	}
	return subs
}

func (d *deployment) workers(bootstrap []string) []worker.Config {
	var all []worker.Config
	for _, name := range Services() {
		c := ServiceConfig{Name: name, Bootstrap: bootstrap, Out: d.cfg.Out, SMTP: d.cfg.SMTP, Concurrency: 1, Log: d.cfg.Log}
		if name == "render" {
			c.Concurrency = d.cfg.Workers
		}
		all = append(all, c.worker())
	}
	return all
}

// stop ends everything, those who need others first.
func (d *deployment) stop() error {
	var errs []error
	if d.node != nil {
		errs = append(errs, d.node.Stop())
	}
	if d.broker != nil {
		errs = append(errs, d.broker.Close())
	}
	if d.hook != nil {
		errs = append(errs, d.hook.Close())
	}
	if d.sink != nil {
		errs = append(errs, d.sink.Close())
	}
	return errors.Join(errs...)
}

// job requests the job, follows it to its end and collects the result.
func (d *deployment) job(ctx context.Context) (*Result, error) {
	if err := d.ready(ctx); err != nil {
		return nil, err
	}
	d.cfg.Watch(d.progress(nil))
	id := client.JobID{Job: d.cfg.Job}
	if _, err := d.client.RequestJob(ctx, id, Request(d.cfg.Orders), client.WriteOptions{}); err != nil {
		return nil, err
	}
	for {
		j, err := d.client.Job(ctx, id)
		if err != nil {
			return nil, err
		}
		d.cfg.Watch(d.progress(j))
		if j.Terminal {
			return d.result(ctx, j)
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

// ready waits until the sidecar has read its tables.
func (d *deployment) ready(ctx context.Context) error {
	for {
		err := d.client.Ready(ctx)
		if !errors.Is(err, client.ErrRecovering) {
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// pause is the time between two looks.
func pause(ctx context.Context) error {
	t := time.NewTimer(100 * time.Millisecond)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func (d *deployment) progress(j *api.Job) Progress {
	p := Progress{Sidecar: d.node.Address(), Broker: d.broker.Bootstrap(), Sink: d.cfg.SMTP.Addr, Folder: d.folder, Job: j, Notes: len(d.hook.Notes())}
	if d.sink != nil {
		p.Mails = len(d.sink.Mails())
	}
	return p
}

func (d *deployment) result(ctx context.Context, j *api.Job) (*Result, error) {
	res := &Result{Job: j.Job, State: j.State, Reason: j.Reason, Orders: d.cfg.Orders, Folder: d.folder,
		Wall: time.Duration(j.EndedAt-j.RequestedAt) * time.Millisecond}
	e := &Evidence{Job: j, Folder: d.folder}
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		e.Events, err = JobEvents(gctx, tail.Config{Bootstrap: []string{d.broker.Bootstrap()}}, j.Job)
		return err
	})
	group.Go(func() (err error) {
		res.Plain, err = Plain(d.cfg.Orders)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	e.Stats = d.settle(ctx, j, e.Events)
	e.Notes = d.hook.Notes()
	if d.sink != nil {
		e.Mails = d.sink.Mails()
		res.Refused = d.sink.Refused()
	}
	return res, res.check(e, d.cfg)
}

// settle waits for what follows the end of a job by its nature, for a while: notifications on their way, and the
// statistics, which it returns. What is not there then is a difference.
func (d *deployment) settle(ctx context.Context, j *api.Job, events map[string]string) (last *stats.Snapshot) {
	ctx, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	for {
		notes, missing := d.hook.Notes(), 0
		for id := range events {
			if notes[id].Count == 0 {
				missing++
			}
		}
		for s, err := range d.client.Stats(ctx, client.StatsFilter{Type: j.Type, Step: StepRender, Total: true}) {
			if err == nil {
				last = s
			}
		}
		told := d.sink == nil || d.cfg.Manager == "" || managers(d.sink.Mails(), d.cfg.Manager) > 0
		if missing == 0 && told && ended(last, j) || pause(ctx) != nil {
			return last
		}
	}
}

// ended says whether the statistics have every sub-job; s may be nil.
func ended(s *stats.Snapshot, j *api.Job) bool {
	for _, st := range j.Steps {
		if st.Counts != nil && (s == nil || s.Tasks.Ended != uint64(st.Counts.Ended())) {
			return false
		}
	}
	return true
}

// managers counts the ids of the mails to one address.
func managers(mails map[string]Mail, address string) (n int) {
	for _, m := range mails {
		if m.To == address {
			n++
		}
	}
	return n
}
