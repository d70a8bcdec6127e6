package table

import (
	"context"

	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/job"
)

// Jobs is sidecar.Jobs over a live deployment. Its methods may be called from any goroutine.
type Jobs struct{ rows *processors.View }

var _ sidecar.Jobs = (*Jobs)(nil)

// NewJobs makes a view that is empty until Run.
func NewJobs(cfg Config) (*Jobs, error) {
	m, err := job.New(job.Config{}) // what it is configured with does not matter for reading
	if err != nil {
		return nil, err
	}
	cfg.Machine = m
	cfg.Header = func(string) bool { return true } // keys may have a customer and 0x00 before the job; there are no parts
	rows, err := processors.NewView(cfg)
	if err != nil {
		return nil, err
	}
	return &Jobs{rows: rows}, nil
}

// Run follows the table until ctx ends.
func (v *Jobs) Run(ctx context.Context) error { return v.rows.Run(ctx) }

// Readiness says how much of the table is loaded.
func (v *Jobs) Readiness() sidecar.Readiness { return readiness(v.rows.State()) }

// Watch gives a value after each change of the job's row or its partition's position.
func (v *Jobs) Watch(key string) (<-chan struct{}, func()) { return v.rows.Watch(key) }

// Reached says whether the record of the jobs topic at p is durable in the table, or had no effect on it.
func (v *Jobs) Reached(key string, p api.Position) (bool, error) {
	ok, err := v.rows.Reached(key, p.Partition, p.Offset)
	return ok, said(err)
}

// find returns a job's row.
func (v *Jobs) find(key string) (processors.ViewRow, *job.Row, error) {
	r, ok, err := v.rows.Get(key)
	if err != nil {
		return r, nil, said(err)
	}
	row, _ := r.Row.(*job.Row)
	if !ok || row.Job == nil {
		return r, nil, sidecar.ErrUnknown
	}
	return r, row, nil
}

// Get returns one job.
func (v *Jobs) Get(key string) (*api.Job, error) {
	r, row, err := v.find(key)
	if err != nil {
		return nil, err
	}
	j := DescribeJob(r, row.Job)
	return &j, nil
}

// Scan looks at n rows in key order and returns the jobs among them: the others admit the jobs of a customer.
func (v *Jobs) Scan(after string, n int) (jobs []api.Job, next string, err error) {
	page, next, err := v.rows.Scan(after, n)
	if err != nil {
		return nil, "", said(err)
	}
	for _, r := range page {
		if row := r.Row.(*job.Row); row.Job != nil {
			jobs = append(jobs, DescribeJob(r, row.Job))
		}
	}
	return jobs, next, nil
}

// Command returns the row's answer to a command.
func (v *Jobs) Command(key, command string) (*api.Command, error) {
	_, row, err := v.find(key)
	if err != nil {
		return nil, err
	}
	return AnswerOf(row.Job, command)
}
