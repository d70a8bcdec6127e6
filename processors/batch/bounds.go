package batch

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

// A row is at most maxRowBytes. What could make it larger is refused where it comes from, or ends the batch as
// INCONSISTENT before it does. The rooms leave space for what one more report adds (to a chunk: of one leg), for answers, and
// for parked reports.
type rooms struct {
	header int // bytes of the header, without the counts of a newer run
	chunk  int // bytes of a chunk
	parked int // chunks of reports before START; at least the 153 that the first one may name
}

var defaultRooms = rooms{header: maxRowBytes - 40<<10, chunk: maxRowBytes - 60<<10, parked: 512}

const (
	startRoom   = 64 << 10 // bytes of a START
	answersRoom = 12 << 10 // bytes of answers: the oldest go first
	reportRoom  = 1 << 10  // bytes that reports change beside counts of chunks
	maxManifest = 4096     // positions of one seal
	maxDigest   = 64       // bytes of a seal's digest
)

// bounded ends a batch whose rows do not keep their bounds. The size is found anew only where it could matter.
func (s *step) bounded(ev *codecs.Event, before mark) {
	r := s.r
	l := r.run
	if l == nil || l.Start == nil || l.open() == nil {
		r.rest = 0
		return
	}
	if d, ok := ev.Data.(*codecs.BatchReport); !ok || d.Children != nil || r.rest == 0 || r.mark() != before {
		r.rest = proto.Size(r.BatchRow) + reportRoom
	}
	switch room := s.m.rooms.header; {
	case len(l.chunks) > maxChunks:
		s.contradict(fmt.Sprintf("too large: reports name more than %d blocks of %d tasks", maxChunks, codecs.ChunkSize))
	case s.of(l) && slices.ContainsFunc(s.parts, func(p codecs.Row) bool { return p.(*Chunk).tooLarge(s.m.rooms.chunk) }):
		s.contradict(fmt.Sprintf("too large: what the legs say of %d tasks does not fit a row", codecs.ChunkSize))
	case r.rest+l.bytes()+l.endsCost <= room:
	case proto.Size(r.BatchRow)+l.bytes()+l.endsCost > room:
		s.contradict("too large: what happened to the tasks does not fit a row")
	}
}

// of says that the parts of the event are chunks of a run.
func (s *step) of(l *life) bool {
	d, ok := s.ev.Data.(*codecs.BatchReport)
	return ok && d.Run == l.Run
}

// endCost is what a unit that reported costs at most.
func (l *life) endCost(e *codecs.UnitEnd) int {
	return 3 + sizeOf(e.Consumed) + sizeOf(e.Failed) + sizeOf(uint64(e.At-l.StartedAt))
}

func sizeOf(v uint64) int {
	n := 1
	for ; v >= 1<<7; v >>= 7 {
		n++
	}
	return n
}

// full says that a report before START names chunks that there is no room for; from then on none is taken, and START
// finds the batch INCONSISTENT. A header that is ahead of the report knows it by the offset.
func (m *Machine) full(l *life, off int64, d *codecs.BatchReport) bool {
	if l.Start != nil && off > l.StartedOffset {
		return false
	}
	if l.FullAt > 0 || l.Start != nil {
		return l.FullAt > 0 && off >= l.FullAt
	}
	if len(l.chunks)+DefaultMaxTotal>>16+1 <= m.rooms.parked {
		return false
	}
	fresh := map[uint32]bool{}
	for _, it := range d.Items {
		codecs.ForEachChunk(it, func(c uint32) bool {
			if id := d.Feeder<<16 | c; l.chunks[id] == nil && c<<16 < DefaultMaxTotal {
				fresh[id] = true
			}
			return c<<16 < DefaultMaxTotal
		})
	}
	return len(l.chunks)+len(fresh) > m.rooms.parked
}

// tooLarge says that a chunk does not keep its bound: only the outcomes of many legs can be so mixed. Each set takes two
// bytes an index, or 8 KiB, or less where it has runs: that is looked at only where it could matter. A change adds at most
// 12 bytes: a run more in each of three sets.
func (c *Chunk) tooLarge(room int) bool {
	if len(c.legs) <= 4 || c.news == 0 {
		return false
	}
	sum := setRoom(c.running)
	for _, l := range c.legs {
		sum += l.room()
	}
	if sum <= room {
		return false
	}
	if c.exact == 0 || c.exact+12*int(c.news) > room {
		b, err := c.AppendBinary(nil)
		if err != nil {
			return true
		}
		c.exact, c.news = len(b), 0
	}
	return c.exact > room
}

// setRoom is the most that a set of n low parts of indexes takes.
func setRoom(n uint32) int {
	if n == 0 {
		return 0
	}
	return 24 + min(int(2*n), codecs.ChunkSize/8)
}
