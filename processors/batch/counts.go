package batch

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/quiesce/quiesce/codecs"
)

// counts of one chunk, or of all.
type counts struct {
	n       [outcomes]uint32
	running uint32
	key     string // of its row, where it was asked for
}

func (c *counts) ended() uint32 {
	t := uint32(0)
	for _, n := range c.n {
		t += n
	}
	return t
}

// reopen forgets what a new round runs again.
func (c *counts) reopen() {
	c.running = 0
	for o := range c.n {
		if reopened[o] {
			c.n[o] = 0
		}
	}
}

func (c *counts) failures() uint32 {
	return c.n[codecs.Failed] + c.n[codecs.TimedOut] + c.n[codecs.Lost]
}

// set replaces the counts of one chunk: absolute values, so that seeing a chunk twice changes nothing.
func (l *life) set(id uint32, c counts) {
	old := l.chunks[id]
	if old == nil || old.full() || c.full() {
		l.replace(id, old, c)
		return
	}
	for o, n := range c.n {
		if was := old.n[o]; n != was {
			l.sum.n[o] += n - was
			l.cost += countCost(n) - countCost(was)
			old.n[o] = n
		}
	}
	if was := old.running; c.running != was {
		l.sum.running += c.running - was
		l.cost += countCost(c.running) - countCost(was)
		old.running = c.running
	}
}

// replace is set where a group of the packed form may begin or end.
func (l *life) replace(id uint32, old *counts, c counts) {
	if old == nil {
		old = &counts{}
	} else {
		l.cost -= old.cost()
	}
	for o := range c.n {
		l.sum.n[o] += c.n[o] - old.n[o]
	}
	l.sum.running += c.running - old.running
	l.cost += c.cost()
	c.key = old.key
	l.groups -= l.heads(id)
	*old = c
	l.chunks[id] = old
	l.groups += l.heads(id)
}

// heads is how many groups of the packed form begin at a chunk and at the one after it.
func (l *life) heads(id uint32) (n int) {
	for _, at := range [2]uint32{id, id + 1} {
		if c := l.chunks[at]; c != nil {
			if before := l.chunks[at-1]; at == 0 || before == nil || before.full() != c.full() {
				n++
			}
		}
	}
	return n
}

// groupCost is the most that the head of a group takes.
const groupCost = 5 + 3

// cost is what the counts take in the row, beside the head of their group.
func (c *counts) cost() int {
	if c.full() {
		return 0
	}
	n := 1 + countCost(c.running)
	for _, x := range c.n {
		n += countCost(x)
	}
	return n
}

func countCost(n uint32) int {
	if n == 0 {
		return 0
	}
	return 2
}

// bytes is the most that the counts of all chunks take in the row.
func (l *life) bytes() int { return l.cost + groupCost*l.groups }

// ids returns the chunk ids in order.
func (l *life) ids() []uint32 {
	ids := make([]uint32, 0, len(l.chunks))
	for id := range l.chunks {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// packed are the counts as the row stores them, see RunRow.
func (l *life) packed() []byte {
	ids := l.ids()
	b := make([]byte, 0, l.bytes())
	next := uint32(0)
	for i := 0; i < len(ids); {
		n := 1
		full := l.chunks[ids[i]].full()
		for i+n < len(ids) && ids[i+n] == ids[i]+uint32(n) && l.chunks[ids[i+n]].full() == full {
			n++
		}
		b = binary.AppendUvarint(b, uint64(ids[i]-next))
		if full {
			b = binary.AppendUvarint(b, uint64(n)<<1|1)
		} else {
			b = binary.AppendUvarint(b, uint64(n)<<1)
			for _, id := range ids[i : i+n] {
				b = l.chunks[id].append(b)
			}
		}
		next = ids[i] + uint32(n)
		i += n
	}
	return b
}

// full says that the chunk is done, and all of it ok.
func (c *counts) full() bool {
	return c.n[codecs.OK] == codecs.ChunkSize && c.ended() == codecs.ChunkSize && c.running == 0
}

// kinds are the counts in the order of their bits.
func (c *counts) kinds() [8]*uint32 {
	return [8]*uint32{&c.n[codecs.OK], &c.n[codecs.Failed], &c.n[codecs.Skipped], &c.n[codecs.Cancelled], &c.n[codecs.TimedOut],
		&c.n[codecs.Lost], &c.n[codecs.Unknown], &c.running}
}

func (c *counts) append(b []byte) []byte {
	at := len(b)
	b = append(b, 0)
	for i, n := range c.kinds() {
		if *n > 0 {
			b[at] |= 1 << i
			b = binary.LittleEndian.AppendUint16(b, uint16(*n))
		}
	}
	return b
}

// readChunks bounds what a row may unpack to: the report that names one chunk too many has named up to 65,536 more.
const readChunks = maxChunks + 1<<16

var errCounts = errors.New("counts of chunks do not decode")

// unpack reads what packed wrote.
func (l *life) unpack(b []byte) error {
	next := uint64(0)
	for len(b) > 0 {
		gap, k := binary.Uvarint(b)
		if k <= 0 {
			return errCounts
		}
		n, m := binary.Uvarint(b[k:])
		if m <= 0 || gap > 1<<32 || n>>1 > readChunks {
			return errCounts
		}
		b = b[k+m:]
		full := n&1 == 1
		n >>= 1
		first := next + gap
		next = first + n
		if n == 0 || next > 1<<32 || len(l.chunks)+int(n) > readChunks || !full && uint64(len(b)) < n {
			return errCounts
		}
		for id := first; id < next; id++ {
			c := counts{}
			if full {
				c.n[codecs.OK] = codecs.ChunkSize
			} else if b = c.read(b); b == nil {
				return errCounts
			}
			l.set(uint32(id), c)
		}
	}
	return nil
}

// read takes one chunk's counts from b and returns the rest, nil when they are cut off or exceed the chunk.
func (c *counts) read(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	tag, b := b[0], b[1:]
	for i, n := range c.kinds() {
		if tag&(1<<i) == 0 {
			continue
		}
		if len(b) < 2 {
			return nil
		}
		if *n = uint32(binary.LittleEndian.Uint16(b)); *n == 0 {
			*n = codecs.ChunkSize
		}
		b = b[2:]
	}
	if c.ended()+c.running > codecs.ChunkSize {
		return nil
	}
	return b
}
