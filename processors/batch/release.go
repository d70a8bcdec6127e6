package batch

import (
	"sort"

	"github.com/quiesce/quiesce/codecs"
)

// release lets the queue have the next tasks: as many as the window has room for.
func (s *step) release() {
	if s.p.Queue == "" || !s.sealed() || s.p.Paused || s.p.Released >= s.p.Total {
		return
	}
	hi := s.p.Total
	if s.p.Window > 0 {
		if room := s.settled() + uint64(s.p.Window); room < uint64(hi) {
			hi = uint32(room)
		}
	}
	if hi <= s.p.Released {
		return
	}
	s.dispatch(s.p.Released, hi)
	s.p.Released = hi
}

// dispatch orders tasks [lo, hi) from the manifest.
func (s *step) dispatch(lo, hi uint32) {
	s.out = append(s.out, codecs.Message{Topic: codecs.TopicDispatch, Key: s.ev.Key, Type: codecs.TypeDispatch, Due: true,
		Data: &codecs.Dispatch{Run: s.p.Run, Round: s.p.Round, Queue: s.p.Queue, Lo: lo, Hi: hi, Chunks: covering(s.p.Chunks, lo, hi)}})
}

// covering returns the chunks that hold tasks [lo, hi).
func covering(chunks []*codecs.ChunkPosition, lo, hi uint32) []*codecs.ChunkPosition {
	from := sort.Search(len(chunks), func(i int) bool { return chunks[i].First > lo })
	to := sort.Search(len(chunks), func(i int) bool { return chunks[i].First >= hi })
	return chunks[max(from-1, 0):to]
}

// releaseAgain orders the tasks that a redrive has opened, as ranges.
func (s *step) releaseAgain() {
	if s.p.Queue == "" {
		return
	}
	open := s.legs[0].all.Clone()
	open.Flip(0, uint64(s.p.Released))
	lo, hi := uint32(0), uint32(0)
	for it := open.Iterator(); it.HasNext(); {
		i := it.Next()
		if hi > lo && i != hi {
			s.dispatch(lo, hi)
			lo = i
		} else if hi == lo {
			lo = i
		}
		hi = i + 1
	}
	if hi > lo {
		s.dispatch(lo, hi)
	}
}
