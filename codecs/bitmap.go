package codecs

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"sort"
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
	seek  []byte // 4 bytes a container: where it begins in the whole; nil = not told
	data  []byte
	head  int // bytes before data
}

// parseBitmap reads the head and checks that it fits the bytes.
func parseBitmap(b []byte) (m bitmap, ok bool) {
	whole := len(b)
	if whole < 4 {
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
	m.seek = b[4*m.size:][:offsets]
	m.head = whole - len(m.data)
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
		if len(m.seek) > 0 && int(binary.LittleEndian.Uint32(m.seek[4*i:])) != m.head+len(m.data)-len(data) {
			return false
		}
		c, n, ok := m.at(i, data)
		key := int(c.base >> 16)
		if !ok || key <= before {
			return false
		}
		data, before = data[n:], key
		if !fn(c) {
			return false
		}
	}
	return len(data) == 0
}

// at reads container i, which begins data, and returns how many bytes it takes.
func (m bitmap) at(i int, data []byte) (c container, n int, ok bool) {
	h := m.heads[4*i:]
	c = container{base: uint32(binary.LittleEndian.Uint16(h)) << 16, card: int(binary.LittleEndian.Uint16(h[2:])) + 1}
	from := 0
	switch {
	case m.runs != nil && m.runs[i/8]&(1<<(i%8)) != 0:
		if len(data) < 2 {
			return c, 0, false
		}
		c.kind, from, n = 'r', 2, 4*int(binary.LittleEndian.Uint16(data))
	case c.card <= maxArray:
		c.kind, n = 'a', 2*c.card
	default:
		c.kind, n = 'b', bitsetBytes
	}
	if from+n > len(data) {
		return c, 0, false
	}
	c.data = data[from : from+n]
	return c, from + n, true
}

// find returns the container of a chunk; false = the set has none of its indexes. The bitmap was checked by each.
func (m bitmap) find(chunk uint32) (c container, ok bool) {
	i, found := sort.Find(m.size, func(i int) int { return int(chunk) - int(binary.LittleEndian.Uint16(m.heads[4*i:])) })
	if !found {
		return c, false
	}
	if len(m.seek) > 0 {
		at := int(binary.LittleEndian.Uint32(m.seek[4*i:])) - m.head
		if at < 0 || at > len(m.data) {
			return c, false
		}
		c, _, ok = m.at(i, m.data[at:])
		return c, ok
	}
	m.each(func(x container) bool {
		if x.base>>16 == chunk {
			c, ok = x, true
		}
		return !ok
	})
	return c, ok
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
