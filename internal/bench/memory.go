package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// MemoryFigures are those of one scenario alone: resident memory of a controller in a process of its own.
type MemoryFigures struct {
	IdleMiB      float64 `json:"idle_mib"`
	TakenOverMiB float64 `json:"taken_over_mib"` // of a table of the open batches
	OpenMiB      float64 `json:"open_mib"`       // when a report has come to each of them, 10,000 a second
	MostMiB      float64 `json:"most_mib"`       // until then
	BytesPerOpen float64 `json:"bytes_per_open"` // more than idle, by batch
	CollectedMiB float64 `json:"collected_mib"`  // taken over with n collected ones besides
}

// memoryUse measures controllers of three deployments: an empty one, one of open batches, one of collected ones too.
func memoryUse(ctx context.Context, f *field, r *Result) error {
	begin := now()
	r.MemoryFigures = &MemoryFigures{}
	_, err := f.resident(ctx, 0, 0, func(_ context.Context, c *child, _ *probe) (err error) {
		r.IdleMiB, _, err = c.memory()
		return err
	})
	if err != nil {
		return fmt.Errorf("idle: %w", err)
	}
	if _, err = f.resident(ctx, 0, f.cfg.Active, func(ctx context.Context, c *child, p *probe) (err error) {
		if r.TakenOverMiB, _, err = c.memory(); err != nil {
			return err
		}
		if err := f.touch(ctx, p); err != nil {
			return err
		}
		r.OpenMiB, r.MostMiB, err = c.memory()
		return err
	}); err != nil {
		return fmt.Errorf("%d open batches: %w", f.cfg.Active, err)
	}
	r.BytesPerOpen = round((r.OpenMiB - r.IdleMiB) * (1 << 20) / float64(f.cfg.Active))
	if r.Rows, err = f.resident(ctx, f.cfg.N, f.cfg.Active, func(_ context.Context, c *child, _ *probe) (err error) {
		r.CollectedMiB, _, err = c.memory()
		return err
	}); err != nil {
		return fmt.Errorf("%d collected batches: %w", f.cfg.N, err)
	}
	r.Seconds, r.ForeignCPUPercent = round(time.Since(begin.at).Seconds()), begin.foreign()
	return nil
}

// resident starts a controller on a deployment of its own with a filled table, waits until every partition has worked,
// and calls fn.
func (f *field) resident(ctx context.Context, collected, open int, fn func(context.Context, *child, *probe) error) (rows int, err error) {
	g, done, err := prepare(ctx, f.cfg)
	if err != nil {
		return 0, err
	}
	defer done()
	if rows, err = g.fill(ctx, collected, open); err != nil {
		return rows, err
	}
	dir, err := os.MkdirTemp("", "quiesce-bench")
	if err != nil {
		return rows, err
	}
	defer os.RemoveAll(dir)
	c, ctx, err := g.startController(ctx, dir)
	if err != nil {
		return rows, err
	}
	defer c.stop()
	p, err := newProbe(g)
	if err != nil {
		return rows, err
	}
	defer p.client.Close()
	if err := g.barrier(ctx, p, "started"); err != nil {
		return rows, errors.Join(err, context.Cause(ctx))
	}
	return rows, fn(ctx, c, p)
}

// barrier completes a small batch on every partition: all that came before is done then.
func (f *field) barrier(ctx context.Context, p *probe, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for i := range f.cfg.Partitions {
		if _, err := p.batch(ctx, idOn(name, i, f.cfg.Partitions), 1); err != nil {
			return fmt.Errorf("a batch on partition %d did not complete: %w", i, err)
		}
	}
	return nil
}

// idOn returns an id that begins with name and belongs to a partition.
func idOn(name string, partition, partitions int32) string {
	for i := 0; ; i++ {
		if id := fmt.Sprintf("%s-%d", name, i); codecs.Partition([]byte(id), partitions) == partition {
			return id
		}
	}
}

// touchRate is how many batches get a report a second.
const touchRate = 10_000

// touch reports one more task of every open batch of the filled table, at a steady rate.
func (f *field) touch(ctx context.Context, p *probe) error {
	var promise kgo.FirstErrPromise
	order := rand.New(rand.NewPCG(f.cfg.Seed, 0)).Perm(f.cfg.Active)
	begin := time.Now()
	for n, i := range order {
		if err := pace(ctx, begin, n, touchRate); err != nil {
			return err
		}
		id := filledID(i, true)
		l := &load{emit: func(_ string, ev *codecs.Event) error {
			rec, err := codecs.Encode(p.f.topic(codecs.TopicControl), id, codecs.Source(p.f.prefix, "bench"), ev)
			if err == nil {
				p.client.Produce(ctx, wire(&rec), promise.Promise())
			}
			return err
		}}
		if err := l.report(0, []uint32{tasksOf / 2}); err != nil {
			return err
		}
	}
	if err := promise.Err(); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return p.f.barrier(ctx, p, "touched")
}

// pace waits until n things may have happened since begin, at a rate a second.
func pace(ctx context.Context, begin time.Time, n int, rate float64) error {
	ahead := time.Duration(float64(n)/rate*float64(time.Second)) - time.Since(begin)
	if ahead < 5*time.Millisecond { // timers are no finer
		return ctx.Err()
	}
	t := time.NewTimer(ahead)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
