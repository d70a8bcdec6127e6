package sidecartest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/table"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/job"
)

// Workflow is the machine of jobs over a log in memory, beside a Deployment: its batches are those of the Deployment, its
// events go to the same topic. Hold stops it too.
type Workflow struct {
	d       *Deployment
	m       *job.Machine
	rows    map[string]*processors.ViewRow
	log     [Partitions][]logged
	applied [Partitions]int
	tasks   []*codecs.Task
	letters []string
}

var (
	_ sidecar.Jobs = (*Workflow)(nil)
	_ sidecar.Log  = (*Workflow)(nil)
)

// NewWorkflow makes a workflow without jobs.
func NewWorkflow(d *Deployment, cfg job.Config) *Workflow {
	m, err := job.New(cfg)
	if err != nil {
		panic(err)
	}
	w := &Workflow{d: d, m: m, rows: map[string]*processors.ViewRow{}}
	d.locked(func() { d.workflow = w })
	return w
}

// Tasks returns the tasks that were given out, oldest first.
func (w *Workflow) Tasks() (tasks []*codecs.Task) {
	w.d.locked(func() { tasks = slices.Clone(w.tasks) })
	return tasks
}

// Letters returns the reasons of the dead letters.
func (w *Workflow) Letters() (reasons []string) {
	w.d.locked(func() { reasons = slices.Clone(w.letters) })
	return reasons
}

// Quarantine marks a job's row, as a fault of the machine would.
func (w *Workflow) Quarantine(key string) { w.d.locked(func() { w.rows[key].Quarantined = true }) }

// Append writes a record of the jobs topic and lets the machine take it.
func (w *Workflow) Append(_ context.Context, key string, ev *codecs.Event) (pos api.Position, err error) {
	w.d.locked(func() { pos = w.append(key, ev) })
	return pos, nil
}

func (w *Workflow) append(key string, ev *codecs.Event) api.Position {
	p := partitionOf(key)
	w.log[p] = append(w.log[p], logged{key, ev})
	w.catchUp()
	return api.Position{Partition: p, Offset: int64(len(w.log[p])) - 1}
}

// Last is the end of the job's partition.
func (w *Workflow) Last(_ context.Context, key string) (pos api.Position, err error) {
	w.d.locked(func() {
		p := partitionOf(key)
		pos = api.Position{Partition: p, Offset: int64(len(w.log[p])) - 1}
	})
	return pos, nil
}

// catchUp steps what waits, unless the deployment is held.
func (w *Workflow) catchUp() {
	for p := range w.log {
		for !w.d.held && w.applied[p] < len(w.log[p]) {
			l := w.log[p][w.applied[p]]
			offset := int64(w.applied[p])
			w.applied[p]++ // what it sends to itself comes after it
			w.step(l.key, int32(p), offset, *l.ev)
			w.d.notify(l.key)
		}
	}
}

func (w *Workflow) step(key string, partition int32, offset int64, ev codecs.Event) {
	r := w.rows[key]
	if r == nil {
		r = &processors.ViewRow{Key: key, Partition: partition, Row: w.m.NewRow(key)}
		w.rows[key] = r
	}
	w.d.now++
	ev.Key, ev.Partition, ev.Time = key, partition, w.d.now
	r.Quarantined = r.Quarantined && !w.m.Repairs(&ev)
	r.Applied = offset
	for i, out := range w.m.Step(r.Row, nil, offset, &ev, nil) {
		w.send(fmt.Sprintf("w/%d/%d/%d", partition, offset, i), out)
	}
}

// send does with an output what the runtime and its readers would.
func (w *Workflow) send(id string, m codecs.Message) {
	if m.ID == "" {
		m.ID = id
	}
	ev := &codecs.Event{Type: m.Type, ID: m.ID, Data: m.Data}
	switch d := m.Data.(type) {
	case *codecs.Task:
		w.tasks = append(w.tasks, d)
	case *codecs.DeadLetter:
		w.letters = append(w.letters, d.Reason)
	}
	switch m.Topic {
	case codecs.TopicJobs:
		p := partitionOf(m.Key)
		w.log[p] = append(w.log[p], logged{m.Key, ev})
	case codecs.TopicControl:
		w.d.append(m.Key, ev)
	case codecs.TopicEvents:
		b, err := codecs.JSON(m.Data)
		if err != nil {
			panic(err)
		}
		w.d.announce(m.Type, m.Key, json.RawMessage(b))
	}
}

// ended tells a job of the end of its batch.
func (w *Workflow) ended(key string, b *api.Batch) {
	c := b.Counts
	w.append(key, &codecs.Event{Type: codecs.TypeBatchEnded, ID: b.Batch + "/" + b.Run, Data: &codecs.BatchEnded{
		Batch: b.Batch, Run: b.Run, Round: b.Round, Step: b.Owner.Step, State: codecs.State_Code(codecs.State_Code_value[b.State]), Reason: b.Reason,
		Counts: &codecs.Counts{Total: c.Total, Ok: c.OK, Failed: c.Failed, Skipped: c.Skipped, Cancelled: c.Cancelled}}})
}

// Readiness is that of the deployment.
func (w *Workflow) Readiness() sidecar.Readiness { return w.d.Readiness() }

// Watch registers a reader.
func (w *Workflow) Watch(key string) (<-chan struct{}, func()) { return w.d.Watch(key) }

// Reached compares with what the machine has taken.
func (w *Workflow) Reached(_ string, p api.Position) (ok bool, err error) {
	err = w.d.read(func() error {
		ok = p.Partition < Partitions && int64(w.applied[p.Partition]) > p.Offset
		return nil
	})
	return ok, err
}

func (w *Workflow) find(key string) (*processors.ViewRow, *codecs.JobRow, error) {
	r := w.rows[key]
	if r == nil || r.Row.(*job.Row).Job == nil {
		return nil, nil, sidecar.ErrUnknown
	}
	return r, r.Row.(*job.Row).Job, nil
}

// Get describes a row.
func (w *Workflow) Get(key string) (j *api.Job, err error) {
	err = w.d.read(func() error {
		r, row, err := w.find(key)
		if err == nil {
			d := table.DescribeJob(*r, row)
			j = &d
		}
		return err
	})
	return j, err
}

// Scan pages through the rows.
func (w *Workflow) Scan(after string, n int) (page []api.Job, next string, err error) {
	err = w.d.read(func() error {
		seen := 0
		for _, key := range slices.Sorted(maps.Keys(w.rows)) {
			if key <= after {
				continue
			}
			if seen == n {
				return nil
			}
			seen++
			next = key
			if r, row, err := w.find(key); err == nil {
				page = append(page, table.DescribeJob(*r, row))
			}
		}
		next = ""
		return nil
	})
	return page, next, err
}

// Command looks up an answer.
func (w *Workflow) Command(key, command string) (c *api.Command, err error) {
	err = w.d.read(func() error {
		_, row, err := w.find(key)
		if err == nil {
			c, err = table.AnswerOf(row, command)
		}
		return err
	})
	return c, err
}
