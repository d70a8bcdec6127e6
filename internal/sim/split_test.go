package sim_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sim"
	"github.com/quiesce/quiesce/processors/worker"
)

// A list, a stream and a file of JSON lines, of no, one and many tasks: each sub-job runs once with what was listed for it.
func TestSplitters(t *testing.T) {
	for _, n := range []int{0, 1, 10_000} {
		tasks := make([]*codecs.ManifestTask, n)
		lines := &strings.Builder{}
		for i := range tasks {
			line := fmt.Sprintf(`{"id":"c%d","amount":%d}`, i, i*3)
			fmt.Fprintln(lines, line)
			tasks[i] = &codecs.ManifestTask{Id: fmt.Sprintf("c%d", i), Payload: &codecs.Payload{Data: []byte(line)}}
		}
		file := filepath.Join(t.TempDir(), "orders.jsonl")
		require.NoError(t, os.WriteFile(file, []byte(lines.String()), 0o600))
		for name, s := range map[string]worker.Splitter{
			"list": worker.SplitList(func(context.Context, *worker.Task) ([]*codecs.ManifestTask, error) { return tasks, nil }),
			"stream": worker.SplitStream(func(context.Context, *worker.Task) iter.Seq2[*codecs.ManifestTask, error] {
				return func(yield func(*codecs.ManifestTask, error) bool) {
					for _, m := range tasks {
						if !yield(m, nil) {
							return
						}
					}
				}
			}),
			"lines": worker.SplitLines(func(context.Context, *worker.Task) (io.ReadCloser, error) { return os.Open(file) }),
		} {
			t.Run(fmt.Sprintf("%s of %d", name, n), func(t *testing.T) {
				var right atomic.Int32
				o := &outline{splitter: s, workers: 100, handler: func(_ context.Context, task *worker.Task) (worker.Result, error) {
					want := fmt.Sprintf(`{"id":"%s","amount":%d}`, task.Id, task.Index*3)
					if task.Id == fmt.Sprintf("c%d", task.Index) && string(task.Payload.Data) == want {
						right.Add(1)
					}
					return worker.Result{}, nil
				}}
				inWorld(t, o, func(t *testing.T, w *world) {
					w.request("j")
					w.seen(3*time.Hour, codecs.TypeJobCompleted, "j")
					require.Equal(t, uint32(n), w.batch("j.s2").Counts.Ok)
					require.Equal(t, int32(n), right.Load())
					require.Equal(t, 1, w.count(codecs.TypeBatchCompleted, "j.s2"))
					require.Len(t, w.s3Inputs(), 1)
				})
			})
		}
	}
}

// lettered splits into n tasks that are named after the list they are in.
func lettered(letter string, n int) worker.Splitter {
	return worker.SplitStream(func(context.Context, *worker.Task) iter.Seq2[*codecs.ManifestTask, error] {
		return func(yield func(*codecs.ManifestTask, error) bool) {
			for i := range n {
				if !yield(&codecs.ManifestTask{Id: fmt.Sprintf("%s%d", letter, i)}, nil) {
					return
				}
			}
		}
	})
}

// A splitter that dies after k sub-jobs, and lists others at its second attempt: one list, the second, runs.
func TestSplitterDiesInTheMiddle(t *testing.T) {
	var attempts, foreign atomic.Int32
	o := &outline{workers: 100, splitter: func(ctx context.Context, task *worker.Task, emit func(*codecs.ManifestTask) error) error {
		if attempts.Add(1) == 1 {
			if err := lettered("a", 2500)(ctx, task, emit); err != nil {
				return err
			}
			return sim.ErrCrash
		}
		return lettered("b", 1200)(ctx, task, emit)
	}, handler: func(_ context.Context, task *worker.Task) (worker.Result, error) {
		if !strings.HasPrefix(task.Id, "b") {
			foreign.Add(1)
		}
		return worker.Result{}, nil
	}}
	inWorld(t, o, func(t *testing.T, w *world) {
		w.request("j")
		w.seen(time.Hour, codecs.TypeJobCompleted, "j")
		require.Equal(t, uint32(1200), w.batch("j.s2").Counts.Ok)
		require.Zero(t, foreign.Load())
		require.Equal(t, int32(2), attempts.Load())
	})
}

// Two attempts at a split are under way and list different tasks: the first proposal in the log is the list, the other
// one's chunks are removed.
func TestFirstListWins(t *testing.T) {
	var attempts, foreign atomic.Int32
	o := &outline{workers: 100, splitter: func(ctx context.Context, task *worker.Task, emit func(*codecs.ManifestTask) error) error {
		letter, n, lasts := "a", 3000, 10*time.Minute
		if attempts.Add(1) == 2 {
			letter, n, lasts = "b", 1700, time.Minute
		}
		if err := lettered(letter, n)(ctx, task, emit); err != nil {
			return err
		}
		return sleep(ctx, lasts, nil)
	}, handler: func(_ context.Context, task *worker.Task) (worker.Result, error) {
		if !strings.HasPrefix(task.Id, "b") {
			foreign.Add(1)
		}
		return worker.Result{}, nil
	}}
	inWorld(t, o, func(t *testing.T, w *world) {
		w.request("j")
		w.pass(time.Second)
		recs, err := w.Log.Read(t.Context(), codecs.Topic(sim.Prefix, codecs.WorkTopic("split")), 0)
		require.NoError(t, err)
		require.Len(t, recs, 1)
		w.Log.Add(&recs[0]) // delivered twice
		w.seen(time.Hour, codecs.TypeJobCompleted, "j")
		w.pass(time.Hour)
		require.Equal(t, int32(2), attempts.Load())
		require.Equal(t, uint32(1700), w.batch("j.s2").Counts.Ok)
		require.Zero(t, foreign.Load())
		require.Equal(t, 1, w.count(codecs.TypeJobCompleted, "j"))
		require.Empty(t, w.manifest(), "the other list lost, and the job has completed")
	})
}

// Tasks add tasks, those add tasks again: all run, once, with what was given to them, and the batch is complete when the
// last one has ended.
func TestTasksThatAddTasks(t *testing.T) {
	var wrong atomic.Int32
	o := &outline{workers: 7, splitter: lettered("r", 10), step: &codecs.FanOutSpec{OpenChildren: true, Window: 20},
		handler: func(_ context.Context, task *worker.Task) (worker.Result, error) {
			depth := strings.Count(task.Id, ".")
			if depth > 0 && string(task.Payload.GetData()) != "of "+task.Id[:strings.LastIndex(task.Id, ".")] {
				wrong.Add(1)
			}
			if depth == 3 {
				return worker.Result{}, nil
			}
			var more []*codecs.ManifestTask
			for k := range 2 {
				more = append(more, &codecs.ManifestTask{Id: fmt.Sprintf("%s.%d", task.Id, k), Payload: &codecs.Payload{Data: []byte("of " + task.Id)}})
			}
			return worker.Result{Children: more}, nil
		}}
	inWorld(t, o, func(t *testing.T, w *world) {
		w.request("j")
		w.seen(5*time.Hour, codecs.TypeJobCompleted, "j")
		s := w.batch("j.s2")
		require.Equal(t, uint32(10*(1+2+4+8)), s.Total)
		require.Equal(t, s.Total, s.Counts.Ok)
		n, most := w.started()
		require.Equal(t, int(s.Total), n)
		require.Equal(t, 1, most)
		require.Zero(t, wrong.Load())
		require.Contains(t, w.s3Inputs()[0], `"ok":150`)
		w.pass(8 * 24 * time.Hour) // retention
		require.Empty(t, w.manifest(), "the added tasks are collected as well")
	})
}
