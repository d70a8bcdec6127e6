package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"golang.org/x/sync/errgroup"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/queue"
)

// Manifest is where chunks are read.
type Manifest interface {
	// Chunk returns the chunk at a position; nil when it is gone.
	Chunk(ctx context.Context, at *codecs.ChunkPosition) (*codecs.ManifestChunk, error)
	// Remove removes the chunk of a batch at a position, if it is there.
	Remove(ctx context.Context, batch string, at *codecs.ChunkPosition) error
}

// Releaser carries out single orders. All fields are required.
type Releaser struct {
	Manifest Manifest
	Producer queue.Producer
	Counters *Counters
	Log      *slog.Logger
}

// errOrder is in the chain when an order itself is wrong.
var errOrder = errors.New("order cannot be carried out")

const (
	enqueueTasks   = 500 // written to the queue together
	enqueueBatches = 4   // of those at once
)

// Release writes the tasks of an order to the queue, or removes its chunks.
func (d *Releaser) Release(ctx context.Context, batch string, o *codecs.Dispatch) error {
	if o.Collect {
		for _, at := range o.Chunks {
			if err := d.Manifest.Remove(ctx, batch, at); err != nil {
				return err
			}
		}
		return nil
	}
	if err := codecs.ValidID("queue", o.Queue); err != nil || o.Hi < o.Lo {
		return fmt.Errorf("%w: queue %q, tasks %d to %d", errOrder, o.Queue, o.Lo, o.Hi)
	}
	var only *roaring.Bitmap
	if len(o.Only) > 0 {
		only = roaring.New()
		if err := only.UnmarshalBinary(o.Only); err != nil {
			return fmt.Errorf("%w: set of indexes: %w", errOrder, err)
		}
	}
	sends, sending := errgroup.WithContext(ctx)
	sends.SetLimit(enqueueBatches)
	var tasks []*codecs.Task
	flush := func() {
		if out := tasks; len(out) > 0 {
			tasks = nil
			sends.Go(func() error {
				if err := d.Producer.Enqueue(sending, o.Queue, 0, out...); err != nil {
					return err
				}
				d.Counters.Tasks.Add(uint64(len(out)))
				return nil
			})
		}
	}
	err := d.each(sending, o, func(index uint32, m *codecs.ManifestTask) {
		if only == nil || only.Contains(index) {
			if tasks = append(tasks, taskOf(batch, o, index, m)); len(tasks) == enqueueTasks {
				flush()
			}
		}
	})
	if err == nil {
		flush()
	}
	if sent := sends.Wait(); sent != nil { // the reason, where both failed
		return sent
	}
	return err
}

// each calls fn with the tasks of an order's range that are in the manifest.
func (d *Releaser) each(ctx context.Context, o *codecs.Dispatch, fn func(index uint32, m *codecs.ManifestTask)) error {
	for i, at := range o.Chunks {
		end := uint64(o.Hi)
		if i+1 < len(o.Chunks) {
			end = min(end, uint64(o.Chunks[i+1].First))
		}
		if end <= uint64(o.Lo) || at.First >= o.Hi {
			continue
		}
		chunk, err := d.Manifest.Chunk(ctx, at)
		if err != nil {
			return err
		}
		if chunk == nil {
			d.Counters.ChunksGone.Add(1)
			d.Log.Warn("manifest chunk is gone; its tasks are not released", "run", o.Run, "first", at.First,
				"partition", at.Partition, "offset", at.Offset)
			continue
		}
		for k := range chunk.Tasks {
			if index := uint64(at.First) + uint64(k); index >= uint64(o.Lo) && index < end {
				fn(uint32(index), chunk.Tasks[k])
			}
		}
	}
	return nil
}

func taskOf(batch string, o *codecs.Dispatch, index uint32, m *codecs.ManifestTask) *codecs.Task {
	t := o.Task
	return &codecs.Task{Kind: "sub-job", Batch: batch, Run: o.Run, Round: o.Round, Index: index, Id: m.Id, Payload: m.Payload, Attempt: 1,
		EnqueuedAt: time.Now().UnixMilli(), Job: t.GetJob(), Step: t.GetStep(), JobKey: t.GetJobKey(), JobType: t.GetJobType(),
		Customer: t.GetCustomer(), Priority: t.GetPriority(), Retry: t.GetRetry(), AttemptTimeout: t.GetAttemptTimeout()}
}
