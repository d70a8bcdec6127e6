package batch

import (
	"math"
	"slices"

	"github.com/quiesce/quiesce/codecs"
)

// Parts names the chunks that an event touches. With a header that is ahead of the event (a replay) it decides as it did
// the first time, because it reads only what is pinned to offsets. The slice may be used again by the next call.
func (m *Machine) Parts(row codecs.Row, off int64, ev *codecs.Event) []string {
	r := row.(*Row)
	switch d := ev.Data.(type) {
	case *codecs.BatchReport:
		return m.reportParts(r, off, ev, d)
	case *codecs.BatchSeal:
		return m.sealParts(r, off, ev, d)
	}
	if k, ok := m.cursorPart(r, ev); ok {
		return []string{k}
	}
	return nil
}

func (m *Machine) chunkKey(batch, run string, id uint32) string {
	if m.off.chunkKeyWithoutRun {
		run = "r"
	}
	return codecs.ChunkKey(batch, run, id)
}

// life returns the run that a record of a name at an offset belongs to; nil = none, the record is stale or the first.
func (r *Row) life(run string, off int64) *life {
	for _, l := range []*life{r.run, r.next} {
		if l != nil && l.Run == run && off >= l.First {
			return l
		}
	}
	return nil
}

// fresh says that a run is not known yet and may be parked.
func (r *Row) fresh(run string) bool {
	known := r.run != nil && r.run.Run == run || r.next != nil && r.next.Run == run
	return !known && (r.run == nil || r.next == nil) && !slices.Contains(r.Past, run)
}

// gate says how a report at an offset is taken by a run.
func (m *Machine) gate(l *life, off int64, d *codecs.BatchReport) verdict {
	if m.off.lateCounts {
		return accepted
	}
	round := max(d.Round, 1)
	if m.off.gateNow {
		off = math.MaxInt64
	}
	switch at := l.roundAt(off); {
	case at == round:
	case at == 0 || round < at:
		return late
	default:
		return stale // a round that nobody has opened
	}
	if l.Start != nil && off > l.StartedOffset && l.pinnedLegs() != max(d.Legs, 1) {
		return unexpected
	}
	if l.Start.GetOpenChildren() && exceeds(d, l.bound(d.Feeder, off)) {
		return unexpected // its chunks cannot tell: N grows
	}
	return accepted
}

// exceeds says that a report names an index at or above a bound.
func exceeds(d *codecs.BatchReport, bound uint32) (is bool) {
	for _, it := range d.Items {
		_ = codecs.ForEachRange(it, func(_, last uint32) { is = is || last >= bound })
	}
	return is
}

// verdict is how a report is taken.
type verdict int

const (
	accepted verdict = iota
	late
	stale
	unexpected
)

func (l *life) pinnedLegs() uint32 { return uint32(max(len(l.Start.GetLegs()), 1)) }

func (m *Machine) reportParts(r *Row, off int64, ev *codecs.Event, d *codecs.BatchReport) []string {
	l := r.life(d.Run, off)
	bound := uint32(DefaultMaxTotal)
	switch {
	case l == nil && (!r.fresh(d.Run) || off < r.Seen): // a replay would have made the run known
		return nil
	case l == nil:
		if max(d.Round, 1) != 1 {
			return nil
		}
	case m.gate(l, off, d) != accepted || r.expires(l, off, ev) || m.full(l, off, d):
		return nil
	default:
		bound = l.bound(d.Feeder, off)
	}
	if len(d.Items) == 1 && d.Items[0].Bitmap == nil { // the bulk of all traffic
		it := d.Items[0]
		if last := it.GetLast(); it.Last == nil || last>>16 == it.First>>16 {
			if it.First&^0xffff >= bound {
				return nil
			}
			r.one[0] = m.key(r, l, d.Run, d.Feeder<<16|it.First>>16)
			return m.withCursor(r, l, r.one[:])
		}
	}
	var ids []uint32
	for _, it := range d.Items {
		codecs.ForEachChunk(it, func(c uint32) bool {
			if c<<16 < bound {
				ids = append(ids, d.Feeder<<16|c)
			}
			return c<<16 < bound
		})
	}
	if len(d.Items) > 1 {
		slices.Sort(ids)
		ids = slices.Compact(ids)
	}
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = m.key(r, l, d.Run, id)
	}
	return m.withCursor(r, l, keys)
}

// key is the key of a chunk; that of a known chunk is not made again.
func (m *Machine) key(r *Row, l *life, run string, id uint32) string {
	if l == nil || m.off.chunkKeyWithoutRun {
		return m.chunkKey(r.Batch, run, id)
	}
	c := l.chunks[id]
	if c == nil {
		return m.chunkKey(r.Batch, run, id)
	}
	if c.key == "" {
		c.key = codecs.ChunkKey(r.Batch, l.Run, id)
	}
	return c.key
}

// expires says that a deadline ends the run before the event. A header that has seen the event knows the end by its
// offset; its deadlines may be others by now.
func (r *Row) expires(l *life, off int64, ev *codecs.Event) bool {
	return off >= r.Seen && l == r.run && l.open() != nil && dueAt(l, max(r.Now, ev.Time)) != notDue
}

// sealParts are the chunks that hold, or may come to hold, indexes that are no tasks.
func (m *Machine) sealParts(r *Row, off int64, ev *codecs.Event, d *codecs.BatchSeal) []string {
	l := r.life(d.Run, off)
	if l == nil || l != r.run || l.Start == nil || d.Feeder >= uint32(len(l.Feeders)) || l.Start.OpenChildren {
		return nil
	}
	f := l.Feeders[d.Feeder]
	switch {
	case off < r.Seen && !(f.Sealed && f.SealedAt == off): // it was refused, or another one counts
		return nil
	case off >= r.Seen && (f.Sealed || l.open() == nil || l.refuses(d) != "" || r.expires(l, off, ev)):
		return nil
	}
	boundary := d.Feeder<<16 | d.Total>>16
	var ids []uint32
	for id := range l.chunks {
		if id >= boundary && id>>16 == d.Feeder {
			ids = append(ids, id)
		}
	}
	if d.Total&0xffff != 0 && !slices.Contains(ids, boundary) {
		ids = append(ids, boundary)
	}
	slices.Sort(ids)
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = m.chunkKey(r.Batch, d.Run, id)
	}
	return keys
}
