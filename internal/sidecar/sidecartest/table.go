package sidecartest

import (
	"maps"
	"slices"

	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// Readiness is what Recover set; ready at first.
func (d *Deployment) Readiness() (r sidecar.Readiness) {
	d.locked(func() { r = d.ready })
	return r
}

// read runs f under the lock when the view is ready.
func (d *Deployment) read(f func() error) (err error) {
	d.locked(func() {
		if !d.ready.OK {
			err = sidecar.ErrNotReady
			return
		}
		err = f()
	})
	return err
}

// Get copies a row.
func (d *Deployment) Get(id string) (b *api.Batch, err error) {
	err = d.read(func() error {
		r, ok := d.rows[id]
		if !ok {
			return sidecar.ErrUnknown
		}
		c := r.Batch
		b = &c
		return nil
	})
	return b, err
}

// Scan pages through the rows.
func (d *Deployment) Scan(after string, n int) (page []api.Batch, next string, err error) {
	err = d.read(func() error {
		for _, id := range d.ids() {
			if id <= after {
				continue
			}
			if len(page) == n {
				next = page[n-1].Batch
				return nil
			}
			page = append(page, d.rows[id].Batch)
		}
		return nil
	})
	return page, next, err
}

// Tasks lists the tasks that have an outcome.
func (d *Deployment) Tasks(id string, outcomes []string, from sidecar.Place, n int) (page sidecar.TaskPage, err error) {
	err = d.read(func() error {
		r, ok := d.rows[id]
		if !ok {
			return sidecar.ErrUnknown
		}
		page.Run = r.Run
		for _, i := range slices.Sorted(maps.Keys(r.outcomes)) {
			t := r.outcomes[i]
			if i < from.Index || len(outcomes) > 0 && !slices.Contains(outcomes, t.Outcome) {
				continue
			}
			if len(page.Tasks) == n {
				page.Next = &sidecar.Place{Index: i}
				return nil
			}
			page.Tasks = append(page.Tasks, t)
		}
		return nil
	})
	return page, err
}

// Missing lists the ranges below the total that have no outcome.
func (d *Deployment) Missing(id string, from sidecar.Place, n int) (page sidecar.MissingPage, err error) {
	err = d.read(func() error {
		r, ok := d.rows[id]
		if !ok {
			return sidecar.ErrUnknown
		}
		page.Batch, page.Run, page.Sealed = id, r.Run, r.State != "open"
		for i := uint32(0); i < r.Counts.Total && len(r.Stages) == 0; i++ {
			if _, done := r.outcomes[i]; done {
				continue
			}
			page.Count++
			last := len(page.Ranges) - 1
			switch {
			case i < from.Index || page.Next != nil:
			case last >= 0 && page.Ranges[last].Last+1 == i:
				page.Ranges[last].Last = i
			case len(page.Ranges) == n:
				page.Next = &sidecar.Place{Index: i}
			default:
				page.Ranges = append(page.Ranges, api.Range{First: i, Last: i})
			}
		}
		for _, st := range r.Stages {
			for _, p := range st.Silent {
				page.Units = append(page.Units, api.Unit{Stage: st.Stage, Topic: st.Topic, Partition: p})
			}
		}
		return nil
	})
	return page, err
}

// Command looks up an answer.
func (d *Deployment) Command(id, command string) (c *api.Command, err error) {
	err = d.read(func() error {
		r, ok := d.rows[id]
		if !ok {
			return sidecar.ErrUnknown
		}
		a, ok := r.answers[command]
		if !ok {
			return sidecar.ErrUnknown
		}
		c = &a
		return nil
	})
	return c, err
}

// Reached compares with what the controller has taken.
func (d *Deployment) Reached(_ string, p api.Position) (ok bool, err error) {
	err = d.read(func() error {
		ok = p.Partition < Partitions && int64(d.applied[p.Partition]) > p.Offset
		return nil
	})
	return ok, err
}
