package stage

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/quiesce/quiesce/codecs"
)

// verdict is what became of a record after its attempts.
type verdict struct {
	outputs []Output
	outcome codecs.Outcome_Code
	reason  string // of a failure
	retries int
}

// attempt calls the handler until it succeeds, skips, or has failed for good. An error means that ctx ended first:
// nothing is known of the record.
func (w *wrapper) attempt(ctx context.Context, r *Record, h Handler, ledger bool) (verdict, error) {
	pause := w.flow.Backoff
	for r.Attempt = 1; ; r.Attempt++ {
		out, err := w.call(ctx, r, h)
		if err == nil {
			if err = w.checkOutputs(out, ledger); err != nil {
				err = NoRetry(err)
			}
		}
		v := verdict{outputs: out, outcome: codecs.OK, retries: r.Attempt - 1}
		switch {
		case err == nil:
			return v, nil
		case errors.Is(err, Skip):
			v.outputs, v.outcome = nil, codecs.Skipped
			return v, nil
		case ctx.Err() != nil:
			return v, context.Cause(ctx)
		case r.Attempt >= w.flow.Attempts || errors.As(err, new(noRetry)):
			v.outputs, v.outcome, v.reason = nil, codecs.Failed, clip(err.Error())
			return v, nil
		}
		w.log.Warn("attempt failed", "stage", w.stage, "topic", r.Topic, "partition", r.Partition, "offset", r.Offset,
			"batch_id", r.Batch, "index", r.Index, "attempt", r.Attempt, "error", err)
		if err := sleep(ctx, pause); err != nil {
			return v, err
		}
		pause *= 2
	}
}

// call calls the handler once. A panic is an error that says where.
func (w *wrapper) call(ctx context.Context, r *Record, h Handler) (out []Output, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("panic: %v", p)
			stack := ""
			if r.Attempt == 1 {
				stack = string(debug.Stack())
			}
			w.log.Error("handler panicked", "stage", w.stage, "topic", r.Topic, "partition", r.Partition, "offset", r.Offset,
				"panic", p, "stack", stack)
		}
	}()
	return h(ctx, r)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// maxReason is the longest reason in bytes that a report may carry.
const maxReason = 1024

// clip makes a reason that a report may carry: valid UTF-8, one line, bounded.
func clip(s string) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\n", " "), "?")
	if len(s) > maxReason {
		s = strings.ToValidUTF8(s[:maxReason-3], "") + "..."
	}
	return s
}

// checkOutputs refuses outputs that are not declared, or that the batch's mode cannot count.
func (w *wrapper) checkOutputs(outs []Output, ledger bool) error {
	for i := range outs {
		o := &outs[i]
		if !slices.Contains(w.declared, o.Topic) {
			return fmt.Errorf("output %d: topic %q is not an output of stage %s", i, o.Topic, w.stage)
		}
		if !ledger || !slices.Contains(w.outputs, o.Topic) {
			continue
		}
		for _, other := range outs[:i] {
			if other.Topic == o.Topic {
				return fmt.Errorf("two records to %s: a ledger batch takes one for each declared output", o.Topic)
			}
		}
	}
	return nil
}
