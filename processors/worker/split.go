package worker

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"math"

	"github.com/oklog/ulid/v2"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

// Bounds of a manifest.
const (
	// MaxChunks is how many chunks a proposal may have.
	MaxChunks = 1024
	// MaxTaskBytes bounds one task of a list: larger payloads travel by reference.
	MaxTaskBytes = 512 << 10

	chunkTasks    = 1000
	chunkBytes    = 256 << 10
	maxChunkBytes = 3 << 20
)

// chunkLimits are the most tasks and bytes of chunk k: they grow, so that many tasks need few chunks.
func chunkLimits(k int) (tasks, bytes int) {
	tasks, bytes = chunkTasks, chunkBytes
	for left := MaxChunks / 2; k >= left && left < MaxChunks-1; left += (MaxChunks - left) / 2 {
		if tasks *= 4; tasks >= chunkTasks*256 {
			break
		}
	}
	return tasks, min(bytes*(tasks/chunkTasks), maxChunkBytes)
}

// lister writes a list of tasks to the manifest as it grows.
type lister struct {
	ctx             context.Context
	reporter        Reporter
	batch, proposal string
	chunk           *codecs.ManifestChunk
	bytes           int
	total           uint64
	positions       []*codecs.ChunkPosition
	digest          hash.Hash
	buf             []byte
}

func newLister(ctx context.Context, r Reporter, batch string) *lister {
	return &lister{ctx: ctx, reporter: r, batch: batch, proposal: ulid.Make().String(), chunk: &codecs.ManifestChunk{}, digest: sha256.New()}
}

// add takes the next task.
func (l *lister) add(t *codecs.ManifestTask) error {
	if err := context.Cause(l.ctx); err != nil {
		return err
	}
	if t == nil {
		return Fail(fmt.Errorf("task %d is nil", l.total))
	}
	size := proto.Size(t) + 4
	if size > MaxTaskBytes {
		return Fail(fmt.Errorf("task %d has %d bytes, at most %d: pass a reference", l.total, size, MaxTaskBytes))
	}
	tasks, bytes := chunkLimits(len(l.positions))
	if n := len(l.chunk.Tasks); n > 0 && (n >= tasks || l.bytes+size > bytes) {
		if err := l.flush(); err != nil {
			return err
		}
	}
	if l.total >= math.MaxUint32 {
		return Fail(errors.New("more tasks than an index can name"))
	}
	if err := l.sum(t); err != nil {
		return err
	}
	l.chunk.Tasks = append(l.chunk.Tasks, t)
	l.bytes += size
	l.total++
	return nil
}

// sum adds a task to the digest: SHA-256 over length (uvarint) and protobuf of each task in order.
func (l *lister) sum(t *codecs.ManifestTask) (err error) {
	l.buf, err = proto.MarshalOptions{Deterministic: true}.MarshalAppend(l.buf[:0], t)
	if err != nil {
		return Fail(fmt.Errorf("task %d: %w", l.total, err))
	}
	var n [binary.MaxVarintLen64]byte
	l.digest.Write(binary.AppendUvarint(n[:0], uint64(len(l.buf))))
	l.digest.Write(l.buf)
	return nil
}

// flush writes the chunk that is open.
func (l *lister) flush() error {
	if len(l.chunk.Tasks) == 0 {
		return nil
	}
	if len(l.positions) == MaxChunks {
		return Fail(fmt.Errorf("the list does not fit into %d chunks: pass payloads by reference", MaxChunks))
	}
	at, err := l.reporter.Chunk(l.ctx, codecs.ChunkKey(l.batch, l.proposal, uint32(len(l.positions))), l.chunk)
	if err != nil {
		return err
	}
	at.First = l.chunk.First
	l.positions = append(l.positions, at)
	l.chunk, l.bytes = &codecs.ManifestChunk{First: uint32(l.total)}, 0
	return nil
}

// drop removes what was written.
func (l *lister) drop(ctx context.Context) error {
	for k := range l.positions {
		if _, err := l.reporter.Chunk(ctx, codecs.ChunkKey(l.batch, l.proposal, uint32(k)), nil); err != nil {
			return err
		}
	}
	return nil
}

// split runs the splitter and proposes its list.
func (a *attempt) split() error {
	l := newLister(a.ctx, a.w.reporter, a.t.Batch)
	err := a.w.cfg.Splitter(a.ctx, a.t, l.add)
	if err == nil {
		err = context.Cause(a.ctx) // what was listed may be half of it
	}
	if err == nil {
		err = l.flush()
	}
	if err == nil {
		err = a.w.reporter.Propose(a.ctx, a.t, &codecs.SplitProposed{Step: a.t.Step, Round: a.t.Round, Attempt: a.t.Attempt,
			Proposal: l.proposal, Total: uint32(l.total), Digest: l.digest.Sum(nil), Chunks: l.positions, Reporter: a.w.cfg.ClientID})
		if err != nil {
			return err // it may have arrived: its chunks stay
		}
		return nil
	}
	if gone := l.drop(a.w.attempts); gone != nil {
		a.w.cfg.Log.Warn("chunks of a split that failed stay in the manifest", "batch_id", a.t.Batch, "chunks", len(l.positions), "error", gone)
	}
	return err
}

// children writes the tasks that a task adds.
func (a *attempt) children(tasks []*codecs.ManifestTask) (*codecs.Children, error) {
	c, bytes := &codecs.ManifestChunk{Tasks: tasks}, 0
	for _, t := range tasks {
		bytes += proto.Size(t) + 4
	}
	if bytes > maxChunkBytes {
		return nil, Fail(fmt.Errorf("%d bytes of added tasks, at most %d: pass references", bytes, maxChunkBytes))
	}
	at, err := a.w.reporter.Chunk(a.ctx, codecs.ChunkKey(a.t.Batch, ulid.Make().String(), 0), c)
	if err != nil {
		return nil, err
	}
	return &codecs.Children{Count: uint32(len(tasks)), Chunk: at}, nil
}
