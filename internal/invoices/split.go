package invoices

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/worker"
)

// split is the splitter of s2: one sub-job for each line that s1 has left.
func (w *work) split(ctx context.Context, t *worker.Task, emit func(*codecs.ManifestTask) error) error {
	lines := worker.SplitLines(func(_ context.Context, t *worker.Task) (io.ReadCloser, error) {
		in, err := readInput(t)
		if err != nil {
			return nil, err
		}
		f, err := os.Open(in.Steps[StepPrepare].Result.Reference)
		if err != nil {
			return nil, worker.Fail(fmt.Errorf("customers: %w", err))
		}
		return f, nil
	})
	counted := func(m *codecs.ManifestTask) error {
		if err := emit(m); err != nil {
			return err
		}
		return w.fault.after()
	}
	if !w.cfg.Reverse {
		return lines(ctx, t, counted)
	}
	var all []*codecs.ManifestTask
	if err := lines(ctx, t, func(m *codecs.ManifestTask) error { all = append(all, m); return nil }); err != nil {
		return err
	}
	for _, m := range slices.Backward(all) {
		if err := counted(m); err != nil {
			return err
		}
	}
	return nil
}
