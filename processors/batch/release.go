package batch

import (
	"bytes"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/quiesce/quiesce/codecs"
)

// release hands out what the window of a queue batch has room for. Pause and cancel are: release nothing.
func (s *step) release() {
	l := s.r.run
	if l == nil || !l.queued() || !l.sealed() || l.open() == nil || l.Paused {
		return
	}
	if l.round() == 1 {
		s.releaseFirst(l)
		return
	}
	s.releaseAgain(l)
}

// room is how many tasks may be released now. A window refills when a quarter of it is free, so that one order covers
// many completions.
func (l *life) room(left uint32) uint32 {
	if l.Window == 0 {
		return left
	}
	out := int64(l.Released) - int64(l.sum.ended()) + int64(l.DoneBefore)
	free := int64(l.Window) - out
	if free <= 0 || free < int64(l.Window+3)/4 && free < int64(left) {
		return 0
	}
	return uint32(min(free, int64(left)))
}

func (s *step) releaseFirst(l *life) {
	n := l.room(l.total() - l.Released)
	if n == 0 {
		return
	}
	s.dispatch(l, l.Released, l.Released+n, nil)
	l.Released += n
}

// releaseAgain releases in a later round what has no outcome, chunk by chunk: the chunk at the cursor comes with the event.
func (s *step) releaseAgain(l *life) {
	for {
		id, cursor, ok := l.cursorChunk()
		l.Cursor = cursor
		if !ok {
			return
		}
		n := l.room(l.total() - min(l.sum.ended(), l.total()))
		if n == 0 {
			return
		}
		c := s.part(id)
		if c == nil { // it comes with the next event
			s.out = append(s.out, s.m.Nudge(s.r.Batch))
			return
		}
		base := id << 16
		end := min(uint64(base)+codecs.ChunkSize, uint64(l.total()))
		set := roaring.New()
		at := max(l.Cursor, uint64(base))
		for ; at < end && set.GetCardinality() < uint64(n); at++ {
			if !c.settled(uint(at&0xffff), l.round()) {
				set.Add(uint32(at))
			}
		}
		l.Cursor = at
		if set.IsEmpty() {
			continue
		}
		l.Released += uint32(set.GetCardinality())
		s.dispatch(l, set.Minimum(), set.Maximum()+1, set)
	}
}

// cursorChunk is the chunk in which the next task to release in a later round lies, and the first task there that may be
// it; false = all are released.
func (l *life) cursorChunk() (id uint32, at uint64, ok bool) {
	for at = l.Cursor; at < uint64(l.total()); at = (at>>16 + 1) << 16 {
		id = uint32(at >> 16)
		size := min(codecs.ChunkSize, uint64(l.total())-uint64(id)<<16)
		if c := l.chunks[id]; c == nil || uint64(c.ended()) < size {
			return id, at, true
		}
	}
	return 0, at, false
}

// withCursor adds the chunk that release may need to the parts of an event. The event changes nothing in it, so it does
// not matter if a replay names another one.
func (m *Machine) withCursor(r *Row, l *life, keys []string) []string {
	if l == nil || l != r.run || !l.queued() || l.round() == 1 {
		return keys
	}
	if k, ok := m.cursorKey(r, l); ok {
		for _, have := range keys {
			if have == k {
				return keys
			}
		}
		return append(keys, k)
	}
	return keys
}

// cursorPart is the chunk that release may need with an event that touches no chunk.
func (m *Machine) cursorPart(r *Row, ev *codecs.Event) (string, bool) {
	switch ev.Data.(type) {
	case *codecs.BatchCommand, *codecs.BatchNudge:
	default:
		return "", false
	}
	l := r.run
	if l == nil || l.Start == nil || !l.queued() || l.round() == 1 || l.open() == nil {
		return "", false
	}
	return m.cursorKey(r, l)
}

func (m *Machine) cursorKey(r *Row, l *life) (string, bool) {
	id, _, ok := l.cursorChunk()
	return m.chunkKey(r.Batch, l.Run, id), ok
}

// part returns the chunk of the current run among the parts.
func (s *step) part(id uint32) *Chunk {
	key := s.m.chunkKey(s.r.Batch, s.r.run.Run, id)
	for _, p := range s.parts {
		if c := p.(*Chunk); c.key == key {
			return c
		}
	}
	return nil
}

// settled says that a task has an outcome in a round, whether the chunk has been lifted into it or not.
func (c *Chunk) settled(i uint, round uint32) bool {
	o, ok := c.outcome(i)
	return ok && !(round > c.round && reopened[o])
}

// dispatch orders the release of [lo, hi), or of the set alone.
func (s *step) dispatch(l *life, lo, hi uint32, only *roaring.Bitmap) {
	d := &codecs.Dispatch{Run: l.Run, Round: l.round(), Queue: l.Start.Queue, Lo: lo, Hi: hi, Task: clone(l.Start.Task)}
	if only != nil && only.GetCardinality() < uint64(hi-lo) {
		only.RunOptimize()
		var b bytes.Buffer
		if _, err := only.WriteTo(&b); err == nil {
			d.Only = b.Bytes()
		}
	}
	for i, c := range l.Chunks {
		end := l.total()
		if i+1 < len(l.Chunks) {
			end = l.Chunks[i+1].First
		}
		if c.First < hi && end > lo {
			d.Chunks = append(d.Chunks, clone(c))
		}
	}
	s.out = append(s.out, codecs.Message{Topic: codecs.TopicDispatch, Key: s.r.Batch, Type: codecs.TypeDispatch, Data: d, Due: true, Trace: s.ev.Traceparent})
}
