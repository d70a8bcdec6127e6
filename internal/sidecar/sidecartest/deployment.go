package sidecartest

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// Partitions of the deployment's topics.
const Partitions = 4

// Deployment holds everything. The zero value is not usable; see New.
type Deployment struct {
	mu       sync.Mutex
	ready    sidecar.Readiness
	log      [Partitions][]logged
	applied  [Partitions]int // records of the log that the table has
	held     bool
	rows     map[string]*row
	events   [Partitions][]api.Event
	watchers map[chan struct{}]string
	appended chan struct{} // closed and replaced at each event
	now      int64
	workflow *Workflow // nil = none
}

type logged struct {
	key string
	ev  *codecs.Event
}

type row struct {
	api.Batch
	outcomes map[uint32]api.Task
	answers  map[string]api.Command
	ownerKey string // of the row of the job that it belongs to
}

var (
	_ sidecar.Batches = (*Deployment)(nil)
	_ sidecar.Log     = (*Deployment)(nil)
	_ sidecar.Feed    = (*Deployment)(nil)
)

// New makes an empty deployment whose view is ready.
func New() *Deployment {
	return &Deployment{ready: sidecar.Readiness{Percent: 100, OK: true}, rows: map[string]*row{},
		watchers: map[chan struct{}]string{}, appended: make(chan struct{}), now: 1_790_000_000_000}
}

// Hold stops the controller: records stay in the log. Release lets it go on.
func (d *Deployment) Hold() { d.locked(func() { d.held = true }) }

// Release lets the controller take everything that waits.
func (d *Deployment) Release() { d.locked(func() { d.held = false; d.catchUp() }) }

// Recover sets what the view says of itself.
func (d *Deployment) Recover(r sidecar.Readiness) { d.locked(func() { d.ready = r }) }

// Clock sets the append time, in ms, that the next record follows.
func (d *Deployment) Clock(ms int64) { d.locked(func() { d.now = ms }) }

// Put writes a row as it is: for states that need no history.
func (d *Deployment) Put(b api.Batch) {
	d.locked(func() {
		d.rows[b.Batch] = &row{Batch: b, outcomes: map[uint32]api.Task{}, answers: map[string]api.Command{}}
		d.notify(b.Batch)
	})
}

// Change edits a row in place.
func (d *Deployment) Change(id string, edit func(b *api.Batch)) {
	d.locked(func() { edit(&d.rows[id].Batch); d.rows[id].Version++; d.notify(id) })
}

// Records returns the events of the control log of a batch, oldest first.
func (d *Deployment) Records(id string) (events []*codecs.Event) {
	d.locked(func() {
		for _, l := range d.log[partitionOf(id)] {
			if l.key == id {
				events = append(events, l.ev)
			}
		}
	})
	return events
}

func (d *Deployment) locked(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

func partitionOf(id string) int32 { return codecs.Partition([]byte(id), Partitions) }

// Append writes a control record and lets the controller take it.
func (d *Deployment) Append(_ context.Context, batch string, ev *codecs.Event) (pos api.Position, err error) {
	d.locked(func() { pos = d.append(batch, ev) })
	return pos, nil
}

func (d *Deployment) append(batch string, ev *codecs.Event) api.Position {
	p := partitionOf(batch)
	pos := api.Position{Partition: p, Offset: int64(len(d.log[p]))}
	d.log[p] = append(d.log[p], logged{batch, ev})
	d.catchUp()
	return pos
}

// Last is the end of the batch's partition.
func (d *Deployment) Last(_ context.Context, batch string) (pos api.Position, err error) {
	d.locked(func() {
		p := partitionOf(batch)
		pos = api.Position{Partition: p, Offset: int64(len(d.log[p])) - 1}
	})
	return pos, nil
}

// catchUp applies what waits, unless the controller is held.
func (d *Deployment) catchUp() {
	if d.held {
		return
	}
	for p := range d.log {
		for d.applied[p] < len(d.log[p]) {
			l := d.log[p][d.applied[p]]
			d.applied[p]++ // what comes of it may be appended here
			d.apply(l.key, api.Position{Partition: int32(p), Offset: int64(d.applied[p]) - 1}, l.ev)
			d.notify(l.key)
		}
	}
	if d.workflow != nil {
		d.workflow.catchUp()
	}
}

func (d *Deployment) notify(id string) {
	for ch, want := range d.watchers {
		if want == "" || partitionOf(want) == partitionOf(id) {
			select {
			case ch <- struct{}{}:
			default:
			}
		}
	}
}

// Watch registers a reader.
func (d *Deployment) Watch(id string) (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	d.locked(func() { d.watchers[ch] = id })
	return ch, func() { d.locked(func() { delete(d.watchers, ch) }) }
}

// ids in order.
func (d *Deployment) ids() []string { return slices.Sorted(maps.Keys(d.rows)) }

// Complete gives a row tasks with outcomes, as reports would.
func (d *Deployment) Complete(id string, tasks ...api.Task) {
	d.locked(func() {
		r := d.rows[id]
		for _, t := range tasks {
			r.outcomes[t.Index] = t
		}
		r.count()
		d.notify(id)
	})
}
