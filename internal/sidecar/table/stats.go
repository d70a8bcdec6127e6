package table

import (
	"context"

	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/stats"
)

// Stats is sidecar.Stats over a live deployment. Its methods may be called from any goroutine.
type Stats struct{ rows *processors.View }

var _ sidecar.Stats = (*Stats)(nil)

// NewStats makes a view that is empty until Run.
func NewStats(cfg Config) (*Stats, error) {
	cfg.Machine, cfg.Header = stats.New(), stats.IsHeader
	rows, err := processors.NewView(cfg)
	if err != nil {
		return nil, err
	}
	return &Stats{rows: rows}, nil
}

// Run follows the table until ctx ends.
func (v *Stats) Run(ctx context.Context) error { return v.rows.Run(ctx) }

// Readiness says how much of the table is loaded.
func (v *Stats) Readiness() sidecar.Readiness { return readiness(v.rows.State()) }

// Rows returns the rows whose keys are wanted. A key that this release cannot read is left out.
func (v *Stats) Rows(wanted func(stats.Key) bool) (rows []*stats.Row, err error) {
	err = v.rows.Select(func(key string) bool {
		k, err := stats.ParseKey(key)
		return err == nil && wanted(k)
	}, func(r processors.ViewRow) bool {
		rows = append(rows, r.Row.(*stats.Row))
		return true
	})
	return rows, said(err)
}
