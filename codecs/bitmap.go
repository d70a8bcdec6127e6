package codecs

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// ErrBitmap is the error of a set of indexes that is not a well-formed roaring bitmap.
var ErrBitmap = errors.New("not a roaring bitmap in the portable format")

// The portable roaring format: a cookie, for each container its high 16 bits and cardinality, and the containers: sorted
// arrays, bit sets or runs of low 16 bits. See the specification at github.com/RoaringBitmap/RoaringFormatSpec.
const (
	cookiePlain   = 12346
	cookieRuns    = 12347
	noOffsetBelow = 4
	maxArray      = 4096
	bitsetBytes   = 1 << 16 / 8
)

// bitmap is a checked roaring bitmap in its own bytes: nothing is allocated, whatever the bytes claim.
type bitmap struct {
	size  int
	runs  []byte // one bit a container: it holds runs
	heads []byte // 4 bytes a container: key, cardinality - 1
	data  []byte
}

// parseBitmap reads the head and checks that it fits the bytes.
func parseBitmap(b []byte) (m bitmap, ok bool) {
	if len(b) < 4 {
		return m, false
	}
	cookie := binary.LittleEndian.Uint32(b)
	b = b[4:]
	switch {
	case cookie == cookiePlain && len(b) >= 4:
		n := binary.LittleEndian.Uint32(b)
		if n > 1<<16 {
			return m, false
		}
		m.size, b = int(n), b[4:]
	case cookie&0xffff == cookieRuns:
		m.size = int(cookie>>16) + 1
		n := (m.size + 7) / 8
		if len(b) < n {
			return m, false
		}
		m.runs, b = b[:n], b[n:]
	default:
		return m, false
	}
	offsets := 0
	if m.runs == nil || m.size >= noOffsetBelow {
		offsets = 4 * m.size
	}
	if len(b) < 4*m.size+offsets {
		return m, false
	}
	m.heads, m.data = b[:4*m.size], b[4*m.size+offsets:]
	return m, true
}

// container is one block of 65,536 indexes of a bitmap.
type container struct {
	base uint32 // index of its first bit
	card int
	kind byte // a: sorted array, b: bit set, r: runs
	data []byte
}

// each calls fn with every container in order, and reports whether the bitmap is well formed so far as its containers'
// sizes, order and cardinalities tell (not what is inside, see container.valid).
func (m bitmap) each(fn func(container) bool) bool {
	data, before := m.data, -1
	for i := range m.size {
		h := m.heads[4*i:]
		key := int(binary.LittleEndian.Uint16(h))
		c := container{base: uint32(key) << 16, card: int(binary.LittleEndian.Uint16(h[2:])) + 1}
		var n int
		switch {
		case m.runs != nil && m.runs[i/8]&(1<<(i%8)) != 0:
			if len(data) < 2 {
				return false
			}
			c.kind, n = 'r', 4*int(binary.LittleEndian.Uint16(data))
			data = data[2:]
		case c.card <= maxArray:
			c.kind, n = 'a', 2*c.card
		default:
			c.kind, n = 'b', bitsetBytes
		}
		if key <= before || n > len(data) {
			return false
		}
		c.data, data, before = data[:n], data[n:], key
		if !fn(c) {
			return false
		}
	}
	return len(data) == 0
}

// valid checks order, bounds and cardinality inside the container.
func (c container) valid() bool {
	switch c.kind {
	case 'a':
		for i := 2; i < len(c.data); i += 2 {
			if binary.LittleEndian.Uint16(c.data[i:]) <= binary.LittleEndian.Uint16(c.data[i-2:]) {
				return false
			}
		}
		return true
	case 'b':
		n := 0
		for i := 0; i < len(c.data); i += 8 {
			n += bits.OnesCount64(binary.LittleEndian.Uint64(c.data[i:]))
		}
		return n == c.card
	}
	n, next := 0, 0
	for i := 0; i < len(c.data); i += 4 {
		start := int(binary.LittleEndian.Uint16(c.data[i:]))
		size := int(binary.LittleEndian.Uint16(c.data[i+2:])) + 1
		if start < next || start+size > 1<<16 {
			return false
		}
		n, next = n+size, start+size
	}
	return n == c.card
}

// ranges calls fn with the runs of set bits, in order, as they lie in the container.
func (c container) ranges(fn func(first, last uint32)) {
	switch c.kind {
	case 'a':
		for i := 0; i < len(c.data); i += 2 {
			x := c.base + uint32(binary.LittleEndian.Uint16(c.data[i:]))
			fn(x, x)
		}
	case 'b':
		for i := 0; i < len(c.data); i += 8 {
			w := binary.LittleEndian.Uint64(c.data[i:])
			for w != 0 {
				from := bits.TrailingZeros64(w)
				n := bits.TrailingZeros64(^(w >> from))
				x := c.base + uint32(8*i+from)
				fn(x, x+uint32(n)-1)
				if from+n == 64 {
					break
				}
				w &^= 1<<(from+n) - 1
			}
		}
	default:
		for i := 0; i < len(c.data); i += 4 {
			x := c.base + uint32(binary.LittleEndian.Uint16(c.data[i:]))
			fn(x, x+uint32(binary.LittleEndian.Uint16(c.data[i+2:])))
		}
	}
}
