package worker

import (
	"context"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

// Recorder is a Reporter in the process: what was reported, in order. For tests and simulations; safe for concurrent use.
type Recorder struct {
	// OnEnd is called with every outcome, before it is acked. Default: nothing.
	OnEnd func(*End)
	// Drop forgets an outcome after OnEnd: Ends stays empty. Default false.
	Drop bool

	mu        sync.Mutex
	ends      []*End
	chunks    []*codecs.ManifestChunk // by offset; nil = removed
	keys      []string
	proposals []*codecs.SplitProposed
}

var _ Reporter = (*Recorder)(nil)

// End implements Reporter.
func (r *Recorder) End(e *End, acked func(error)) {
	if r.OnEnd != nil {
		r.OnEnd(e)
	}
	if !r.Drop {
		r.mu.Lock()
		r.ends = append(r.ends, e)
		r.mu.Unlock()
	}
	acked(nil)
}

// Chunk implements Reporter.
func (r *Recorder) Chunk(_ context.Context, key string, c *codecs.ManifestChunk) (*codecs.ChunkPosition, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c == nil {
		for i, k := range r.keys {
			if k == key {
				r.chunks[i] = nil
			}
		}
	} else {
		c = proto.Clone(c).(*codecs.ManifestChunk)
	}
	r.keys, r.chunks = append(r.keys, key), append(r.chunks, c)
	return &codecs.ChunkPosition{First: c.GetFirst(), Offset: int64(len(r.chunks) - 1)}, nil
}

// Propose implements Reporter.
func (r *Recorder) Propose(_ context.Context, _ *Task, p *codecs.SplitProposed) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.proposals = append(r.proposals, p)
	return nil
}

// Ends returns the outcomes so far.
func (r *Recorder) Ends() []*End {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*End(nil), r.ends...)
}

// Proposals returns the lists proposed so far.
func (r *Recorder) Proposals() []*codecs.SplitProposed {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*codecs.SplitProposed(nil), r.proposals...)
}

// At returns the chunk at a position; nil when it was removed or never was.
func (r *Recorder) At(p *codecs.ChunkPosition) *codecs.ManifestChunk {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.Offset < 0 || p.Offset >= int64(len(r.chunks)) {
		return nil
	}
	return r.chunks[p.Offset]
}
