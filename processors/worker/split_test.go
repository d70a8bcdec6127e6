package worker_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/queue"
	"github.com/quiesce/quiesce/processors/worker"
)

// runSplit runs one split until it has proposed or ended.
func runSplit(t *testing.T, s worker.Splitter, task *codecs.Task, end **worker.End) *worker.Recorder {
	t.Helper()
	m := queue.NewMemory()
	require.NoError(t, m.Enqueue(t.Context(), "q", 0, task))
	ctx, cancel := context.WithCancel(t.Context())
	counters := &worker.Counters{}
	rec := &worker.Recorder{OnEnd: func(e *worker.End) { *end = e }}
	done := make(chan error, 1)
	go func() {
		done <- worker.Work(ctx, worker.Config{Queue: "q", Log: quiet, Splitter: s, Counters: counters}, m.Consumer("q"), m, rec)
	}()
	require.Eventually(t, func() bool { return counters.OK.Load()+counters.Failed.Load()+counters.TimedOut.Load() == 1 }, patience, time.Millisecond)
	cancel()
	require.NoError(t, <-done)
	return rec
}

func splitTask() *codecs.Task {
	return &codecs.Task{Kind: "split", Batch: "j.s", Job: "j", JobKey: "j", Step: "s", Round: 1, Attempt: 1}
}

func numbered(n int, payload string) worker.Splitter {
	return worker.SplitStream(func(context.Context, *worker.Task) iter.Seq2[*codecs.ManifestTask, error] {
		return func(yield func(*codecs.ManifestTask, error) bool) {
			for i := range n {
				m := &codecs.ManifestTask{Id: fmt.Sprint(i)}
				if payload != "" {
					m.Payload = &codecs.Payload{Data: []byte(payload)}
				}
				if !yield(m, nil) {
					return
				}
			}
		}
	})
}

// A proposal names every task once, in order, within bounds, and its digest is that of the tasks.
func TestSplit(t *testing.T) {
	for name, c := range map[string]struct {
		n       int
		payload string
		chunks  int // 0 = within bounds
	}{
		"none":        {0, "", 0},
		"one":         {1, "", 1},
		"1,000":       {1000, "", 1},
		"1,001":       {1001, "", 2},
		"10,000":      {10_000, "", 10},
		"1,000,000":   {1_000_000, "", 512 + 122},
		"large tasks": {600, strings.Repeat("x", 100<<10), 300},
	} {
		t.Run(name, func(t *testing.T) {
			var end *worker.End
			rec := runSplit(t, numbered(c.n, c.payload), splitTask(), &end)
			require.Nil(t, end)
			require.Len(t, rec.Proposals(), 1)
			p := rec.Proposals()[0]
			require.Equal(t, uint32(c.n), p.Total)
			require.Len(t, p.Chunks, c.chunks)
			digest, next := sha256.New(), 0
			for _, at := range p.Chunks {
				chunk := rec.At(at)
				require.Equal(t, uint32(next), at.First)
				require.Equal(t, uint32(next), chunk.First)
				require.LessOrEqual(t, proto.Size(chunk), 3<<20+1024)
				for _, m := range chunk.Tasks {
					if m.Id != fmt.Sprint(next) {
						t.Fatalf("task %d is %s", next, m.Id)
					}
					b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
					require.NoError(t, err)
					digest.Write(binary.AppendUvarint(nil, uint64(len(b))))
					digest.Write(b)
					next++
				}
			}
			require.Equal(t, c.n, next)
			require.Equal(t, digest.Sum(nil), p.Digest)
			require.NoError(t, codecs.Validate(&codecs.Event{Type: codecs.TypeSplitProposed, Key: "j", Subject: "j", Data: p}))
		})
	}
}

// A split that fails proposes nothing and leaves nothing behind; its last attempt is an outcome.
func TestSplitThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		splitter worker.Splitter
		attempt  uint32
		reason   string
	}{
		"error after 2,500 tasks": {func(ctx context.Context, t *worker.Task, emit func(*codecs.ManifestTask) error) error {
			if err := numbered(2500, "")(ctx, t, emit); err != nil {
				return err
			}
			return errors.New("database gone")
		}, 3, "database gone"},
		"a task that is too large": {numbered(3, strings.Repeat("x", 600<<10)), 1, "pass a reference"},
		"list": {worker.SplitList(func(context.Context, *worker.Task) ([]*codecs.ManifestTask, error) {
			return nil, errors.New("no list")
		}), 3, "no list"},
		"lines": {worker.SplitLines(func(context.Context, *worker.Task) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("{}\n\n{\"a\":1}\n{")), nil
		}), 1, "line 4 is not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			var end *worker.End
			task := splitTask()
			task.Retry = &codecs.Retry{Attempts: 3, First: 1}
			rec := runSplit(t, c.splitter, task, &end)
			require.Empty(t, rec.Proposals())
			require.Equal(t, codecs.Failed, end.Outcome)
			require.Contains(t, end.Reason, c.reason)
			require.Equal(t, c.attempt, end.Task.Attempt)
			for o := range int64(100) {
				require.Nil(t, rec.At(&codecs.ChunkPosition{Offset: o}), "chunk at %d stays", o)
			}
		})
	}
}

// A sub-job may add tasks: they stand in the manifest before its outcome names them.
func TestChildren(t *testing.T) {
	ends, rec := memory(t, worker.Config{Handler: func(_ context.Context, t *worker.Task) (worker.Result, error) {
		if t.Index == 1 {
			return worker.Result{Children: []*codecs.ManifestTask{{Id: "x"}, {Id: "y"}}}, nil
		}
		if t.Index == 2 {
			return worker.Result{Children: []*codecs.ManifestTask{{Payload: &codecs.Payload{Data: make([]byte, 4<<20)}}}}, nil
		}
		return worker.Result{}, nil
	}}, 3, subjobs(3, nil)...)
	require.Nil(t, ends[0].Children)
	require.Equal(t, uint32(2), ends[1].Children.Count)
	require.Equal(t, "y", rec.At(ends[1].Children.Chunk).Tasks[1].Id)
	require.Equal(t, codecs.Failed, ends[2].Outcome)
}
