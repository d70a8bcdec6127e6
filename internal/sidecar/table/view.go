package table

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/batch"
)

// Config of a view: brokers, deployment, folder, security. Machine is filled in.
type Config = processors.ViewConfig

// View is sidecar.Batches over a live deployment. Its methods may be called from any goroutine.
type View struct {
	rows    *processors.View
	reasons *processors.TopicView
}

var _ sidecar.Batches = (*View)(nil)

// New makes a view that is empty until Run.
func New(cfg Config) (*View, error) {
	cfg.Machine = batch.New(batch.Config{}) // what it is configured with does not matter for reading
	rows, err := processors.NewView(cfg)
	if err != nil {
		return nil, err
	}
	reasons, err := processors.NewTopicView(cfg, codecs.TopicOutcomes)
	if err != nil {
		return nil, err
	}
	return &View{rows: rows, reasons: reasons}, nil
}

// Run follows the topics until ctx ends.
func (v *View) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return v.rows.Run(ctx) })
	g.Go(func() error { return v.reasons.Run(ctx) })
	return g.Wait()
}

// Readiness says how much of both topics is loaded.
func (v *View) Readiness() sidecar.Readiness {
	a, b := readiness(v.rows.State()), readiness(v.reasons.State())
	return sidecar.Readiness{Percent: min(a.Percent, b.Percent), OK: a.OK && b.OK, Stale: a.OK && b.OK && (a.Stale || b.Stale)}
}

func readiness(s processors.ViewState) sidecar.Readiness {
	return sidecar.Readiness{Percent: s.Percent, OK: s.Ready, Stale: s.Ready && !s.Connected}
}

// Watch gives a value after each change of the batch's row or its partition's position.
func (v *View) Watch(id string) (<-chan struct{}, func()) { return v.rows.Watch(id) }

// Reached says whether the control record at p is durable in the table, or had no effect on it.
func (v *View) Reached(id string, p api.Position) (bool, error) {
	ok, err := v.rows.Reached(id, p.Partition, p.Offset)
	return ok, said(err)
}

// said turns the errors of views into those of sources.
func said(err error) error {
	if errors.Is(err, processors.ErrViewNotReady) {
		return fmt.Errorf("%w: %w", sidecar.ErrNotReady, err)
	}
	return err
}

// record is a batch's row as it is now.
type record struct {
	processors.ViewRow
	row *batch.Row
}

func recordOf(r processors.ViewRow) record { return record{r, r.Row.(*batch.Row)} }

// find returns a batch's row.
func (v *View) find(id string) (record, error) {
	r, ok, err := v.rows.Get(id)
	if err != nil {
		return record{}, said(err)
	}
	if !ok {
		return record{}, sidecar.ErrUnknown
	}
	return recordOf(r), nil
}

// Get returns one batch.
func (v *View) Get(id string) (*api.Batch, error) {
	r, err := v.find(id)
	if err != nil {
		return nil, err
	}
	b := describe(r)
	return &b, nil
}

// Scan returns batches in id order.
func (v *View) Scan(after string, n int) (batches []api.Batch, next string, err error) {
	page, next, err := v.rows.Scan(after, n)
	if err != nil {
		return nil, "", said(err)
	}
	for _, r := range page {
		batches = append(batches, describe(recordOf(r)))
	}
	return batches, next, nil
}

// Command returns the row's answer to a command.
func (v *View) Command(id, command string) (*api.Command, error) {
	r, err := v.find(id)
	if err != nil {
		return nil, err
	}
	for _, a := range r.row.Answers {
		if a.Id == command {
			return &api.Command{Command: a.Id, Verb: a.Verb, Applied: a.Applied, Reason: a.Reason, At: api.Int64(a.At)}, nil
		}
	}
	return nil, sidecar.ErrUnknown
}
