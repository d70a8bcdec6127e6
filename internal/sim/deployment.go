package sim

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/batch"
	"github.com/quiesce/quiesce/processors/dispatcher"
	"github.com/quiesce/quiesce/processors/job"
	"github.com/quiesce/quiesce/processors/queue"
)

// Config of a deployment.
type Config struct {
	// Types are the job types.
	Types []*codecs.JobType
	// Batch configures the controller.
	Batch batch.Config
	// Ack is how long the log takes to acknowledge a record. Default 2 ms.
	Ack time.Duration
	// Log gets what operators would see. Required.
	Log *slog.Logger
}

// Deployment is everything but the workers.
type Deployment struct {
	Log   *Log
	Tasks *queue.Memory
	// Dispatched counts what the dispatcher did.
	Dispatched *dispatcher.Counters

	cfg   Config
	hosts map[string]*host // by role
	group *errgroup.Group
	ctx   context.Context
	stop  context.CancelFunc
}

// Prefix is the deployment's name.
const Prefix = codecs.DefaultPrefix

// Start runs a deployment until Stop.
func Start(ctx context.Context, cfg Config) (*Deployment, error) {
	if cfg.Ack == 0 {
		cfg.Ack = 2 * time.Millisecond
	}
	jobs, err := job.New(job.Config{Types: cfg.Types})
	if err != nil {
		return nil, fmt.Errorf("simulation: %w", err)
	}
	d := &Deployment{Log: NewLog(cfg.Ack), Tasks: queue.NewMemory(), Dispatched: &dispatcher.Counters{}, cfg: cfg, hosts: map[string]*host{}}
	ctx, d.stop = context.WithCancel(ctx)
	d.group, d.ctx = errgroup.WithContext(ctx)
	for _, m := range []processors.Machine{jobs, batch.New(cfg.Batch)} {
		h := newHost(m, d.Log, Prefix)
		d.hosts[m.Role()] = h
		d.group.Go(func() error { return h.run(d.ctx) })
	}
	d.group.Go(d.dispatch)
	for _, name := range queues(cfg.Types) {
		d.group.Go(func() error { return d.enqueue(name) })
	}
	return d, nil
}

// Stop ends it and returns what went wrong.
func (d *Deployment) Stop() error {
	d.stop()
	return d.group.Wait()
}

// Done is closed when the deployment has stopped, by itself or by Stop.
func (d *Deployment) Done() <-chan struct{} { return d.ctx.Done() }

// queues returns the names of all queues of the types.
func queues(types []*codecs.JobType) []string {
	seen := map[string]bool{}
	var names []string
	add := func(name string) {
		if name != "" && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for _, t := range types {
		for _, s := range t.Steps {
			add(s.GetTask().GetQueue())
			add(s.GetFanOut().GetSplit())
			add(s.GetFanOut().GetQueue())
		}
	}
	return names
}

// Look calls fn with the row of a role's key, where there is one; nobody changes it meanwhile.
func (d *Deployment) Look(role, key string, fn func(codecs.Row)) bool {
	h := d.hosts[role]
	h.mu.Lock()
	defer h.mu.Unlock()
	row, ok := h.heads[key]
	if ok {
		fn(row)
	}
	return ok
}

// Send writes an event to one of the deployment's topics (its logical name).
func (d *Deployment) Send(topic, key string, ev *codecs.Event) error {
	rec, err := codecs.Encode(codecs.Topic(Prefix, topic), key, codecs.Source(Prefix, "client"), ev)
	if err != nil {
		return err
	}
	d.Log.Add(&rec)
	return nil
}

// Follow calls fn with every event of a topic, from its start, until ctx is done or fn fails.
func (d *Deployment) Follow(ctx context.Context, topic string, fn func(*codecs.Event) error) error {
	return d.Log.follow(ctx, codecs.Topic(Prefix, topic), func(rec *codecs.Record) error {
		var ev codecs.Event
		if err := codecs.Decode(rec, &ev); err != nil {
			return fmt.Errorf("%s: offset %d: %w", topic, rec.Offset, err)
		}
		return fn(&ev)
	})
}

// enqueue hands the records of a work topic to the in-memory queue.
func (d *Deployment) enqueue(name string) error {
	return d.Follow(d.ctx, codecs.WorkTopic(name), func(ev *codecs.Event) error {
		t, ok := ev.Data.(*codecs.Task)
		if !ok {
			return fmt.Errorf("queue %s: %s is no task", name, ev.Type)
		}
		return d.Tasks.Enqueue(d.ctx, name, 0, t)
	})
}

// dispatch carries out the controller's orders.
func (d *Deployment) dispatch() error {
	r := &dispatcher.Releaser{Manifest: manifest{d.Log}, Producer: d.Tasks, Counters: d.Dispatched, Log: d.cfg.Log}
	return d.Follow(d.ctx, codecs.TopicDispatch, func(ev *codecs.Event) error {
		o, ok := ev.Data.(*codecs.Dispatch)
		if !ok {
			return fmt.Errorf("dispatch: %s is no order", ev.Type)
		}
		if err := r.Release(d.ctx, strings.Clone(ev.Key), o); err != nil && d.ctx.Err() == nil {
			return fmt.Errorf("dispatch: batch %s: %w", ev.Key, err)
		}
		return nil
	})
}

// manifest reads chunks from the log.
type manifest struct{ log *Log }

// Remove implements dispatcher.Manifest.
func (m manifest) Remove(_ context.Context, batch string, at *codecs.ChunkPosition) error {
	rec, ok := m.log.at(codecs.Topic(Prefix, codecs.TopicManifest), at.Offset)
	if !ok || string(codecs.BatchOf(rec.Key)) != batch {
		return nil
	}
	gone, err := codecs.Encode(rec.Topic, string(rec.Key), codecs.Source(Prefix, "dispatcher"),
		&codecs.Event{Type: codecs.TypeManifestChunk, ID: fmt.Sprintf("collect/%d", at.Offset)})
	if err == nil {
		m.log.Add(&gone)
	}
	return err
}

// Chunk implements dispatcher.Manifest.
func (m manifest) Chunk(_ context.Context, at *codecs.ChunkPosition) (*codecs.ManifestChunk, error) {
	rec, ok := m.log.at(codecs.Topic(Prefix, codecs.TopicManifest), at.Offset)
	if !ok || rec.Value == nil {
		return nil, nil
	}
	var ev codecs.Event
	if err := codecs.Decode(&rec, &ev); err != nil {
		return nil, fmt.Errorf("manifest: offset %d: %w", at.Offset, err)
	}
	chunk, _ := ev.Data.(*codecs.ManifestChunk)
	return chunk, nil
}
