package queue

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
)

// progress is what is known of one partition of a queue above its committed offset.
type progress struct {
	base   int64         // every offset below is done
	done   []span        // above base, sorted, apart from each other
	counts map[int64]int // deliveries of offsets that are not done, where > 0
	stale  bool          // decoded from the metadata of another incarnation of the topic
}

// span is the offsets [lo, hi).
type span struct{ lo, hi int64 }

func newProgress(base int64) *progress { return &progress{base: base, counts: map[int64]int{}} }

func (p *progress) isDone(o int64) bool {
	if o < p.base {
		return true
	}
	i, found := p.find(o)
	return found || i > 0 && o < p.done[i-1].hi
}

func (p *progress) find(o int64) (int, bool) {
	return slices.BinarySearchFunc(p.done, o, func(s span, o int64) int {
		switch {
		case s.lo < o:
			return -1
		case s.lo > o:
			return 1
		}
		return 0
	})
}

// finish marks an offset as done and moves the base over what is contiguous. Offsets that hold no task (gaps by
// compaction or control records) are finished by skip.
func (p *progress) finish(o int64) {
	delete(p.counts, o)
	if p.isDone(o) {
		return
	}
	i, _ := p.find(o)
	p.done = slices.Insert(p.done, i, span{o, o + 1})
	if i+1 < len(p.done) && p.done[i].hi == p.done[i+1].lo {
		p.done[i].hi = p.done[i+1].hi
		p.done = slices.Delete(p.done, i+1, i+2)
	}
	if i > 0 && p.done[i-1].hi == p.done[i].lo {
		p.done[i-1].hi = p.done[i].hi
		p.done = slices.Delete(p.done, i, i+1)
	}
	p.advance()
}

// skip finishes every offset in [lo, hi).
func (p *progress) skip(lo, hi int64) {
	for o := lo; o < hi; o++ {
		if o >= p.base && len(p.done) == 0 && o == p.base {
			p.base++
			delete(p.counts, o)
			continue
		}
		p.finish(o)
	}
}

func (p *progress) advance() {
	for len(p.done) > 0 && p.done[0].lo <= p.base {
		p.base = max(p.base, p.done[0].hi)
		p.done = p.done[1:]
	}
}

// maxSegments bounds the metadata: a segment takes at most 6 bytes where offsets are near each other, 300 of them with
// the head and base64 stay below 2,048 bytes in practice; encode checks.
const (
	maxSegments = 200
	maxMetadata = 2048
)

// full says that no further task of the partition may be started: each may become a segment of its own.
func (p *progress) full(starting int) bool {
	return len(p.done)+len(p.counts)+starting > maxSegments
}

const metadataVersion = 1

var errMetadata = errors.New("commit metadata is not ours")

// segment is a run of offsets of one kind: 0 = done, n = delivered n times.
type segment struct {
	span
	kind int
}

func (p *progress) segments() []segment {
	segs := make([]segment, 0, len(p.done)+len(p.counts))
	for _, s := range p.done {
		segs = append(segs, segment{s, 0})
	}
	for o, n := range p.counts {
		if o >= p.base {
			segs = append(segs, segment{span{o, o + 1}, n})
		}
	}
	slices.SortFunc(segs, func(a, b segment) int { return int(a.lo - b.lo) })
	out := segs[:0]
	for _, s := range segs {
		if n := len(out); n > 0 && out[n-1].hi == s.lo && out[n-1].kind == s.kind {
			out[n-1].hi = s.hi
			continue
		}
		out = append(out, s)
	}
	return out
}

// encode returns the commit metadata: always with the topic's id, since an offset means nothing without it. What does not fit is left out from the end:
// tasks there may run again, none is lost.
func (p *progress) encode(topicID [16]byte) string {
	segs := p.segments()
	b := append([]byte{metadataVersion}, topicID[:]...)
	at := p.base
	for _, s := range segs {
		next := binary.AppendUvarint(b, uint64(s.lo-at))
		next = binary.AppendUvarint(next, uint64(s.hi-s.lo))
		next = binary.AppendUvarint(next, uint64(s.kind))
		if base64.RawStdEncoding.EncodedLen(len(next)) > maxMetadata {
			break
		}
		b, at = next, s.hi
	}
	return base64.RawStdEncoding.EncodeToString(b)
}

// decodeProgress reads commit metadata. Metadata of another incarnation of the topic gives a fresh progress that is
// stale, none a fresh one; what is not ours is an error.
func decodeProgress(base int64, topicID [16]byte, metadata string) (*progress, error) {
	p := newProgress(base)
	if metadata == "" {
		return p, nil
	}
	b, err := base64.RawStdEncoding.DecodeString(metadata)
	if err != nil || len(b) < 17 || b[0] != metadataVersion {
		return p, errMetadata
	}
	if [16]byte(b[1:17]) != topicID {
		p = newProgress(0)
		p.stale = true
		return p, nil
	}
	at := base
	for b = b[17:]; len(b) > 0; {
		var v [3]uint64
		for i := range v {
			n, k := binary.Uvarint(b)
			if k <= 0 || n > 1<<40 {
				return newProgress(base), errMetadata
			}
			v[i], b = n, b[k:]
		}
		lo := at + int64(v[0])
		at = lo + int64(v[1])
		if v[1] == 0 || v[1] > 1<<32 {
			return newProgress(base), errMetadata
		}
		if v[2] == 0 {
			p.done = append(p.done, span{lo, at})
			continue
		}
		if v[1] > maxSegments {
			return newProgress(base), errMetadata
		}
		for o := lo; o < at; o++ {
			p.counts[o] = int(v[2])
		}
	}
	p.advance()
	return p, nil
}
