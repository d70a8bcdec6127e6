package markers

import mathbits "math/bits"

// bits is a set of small numbers, least significant bit first.
type bits []byte

func (b *bits) add(i int) {
	for len(*b) <= i/8 {
		*b = append(*b, 0)
	}
	(*b)[i/8] |= 1 << (i % 8)
}

func (b bits) has(i int) bool { return i/8 < len(b) && b[i/8]&(1<<(i%8)) != 0 }

func (b bits) count() (n int) {
	for _, x := range b {
		n += mathbits.OnesCount8(x)
	}
	return n
}
