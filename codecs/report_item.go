package codecs

import "encoding/binary"

// MaxReportChunks bounds what one report may make a row load: the sum over its items of the chunks of 65,536 indexes
// that each touches (67 million tasks in one range).
const MaxReportChunks = 1024

// NewItem names the tasks first to last, inclusive.
func NewItem(first, last uint32, o Outcome_Code) *ReportItem {
	it := &ReportItem{First: first, Outcome: o}
	if last != first {
		it.Last = &last
	}
	return it
}

// ForEachRange calls fn with the ranges (inclusive) of task indexes that an item names, ascending and not touching each
// other. An error means that fn was not called. It allocates nothing that depends on what a bitmap claims.
func ForEachRange(it *ReportItem, fn func(first, last uint32)) error {
	if len(it.Bitmap) == 0 {
		last := it.First
		if it.Last != nil {
			last = *it.Last
		}
		if last < it.First {
			return FieldError{"/last", "smaller than first"}
		}
		fn(it.First, last)
		return nil
	}
	m, ok := parseBitmap(it.Bitmap)
	if !ok || !m.each(container.valid) {
		return ErrBitmap
	}
	var from, to uint32
	open := false
	m.each(func(c container) bool {
		c.ranges(func(first, last uint32) {
			switch {
			case !open:
				from, to, open = first, last, true
			case to+1 == first:
				to = last
			default:
				fn(from, to)
				from, to = first, last
			}
		})
		return true
	})
	if open {
		fn(from, to)
	}
	return nil
}

// ForEachChunk calls fn with the numbers (index >> 16) of the chunks that an item touches, ascending, until it returns
// false. The item was checked, see Validate.
func ForEachChunk(it *ReportItem, fn func(chunk uint32) bool) {
	if len(it.Bitmap) == 0 {
		last := max(it.First, it.GetLast())
		for c := it.First / ChunkSize; c <= last/ChunkSize && fn(c); c++ {
		}
		return
	}
	m, ok := parseBitmap(it.Bitmap)
	for i := 0; ok && i < m.size; i++ {
		ok = fn(uint32(binary.LittleEndian.Uint16(m.heads[4*i:])))
	}
}

// ForEachRangeOf calls fn with the ranges (inclusive) of indexes of one chunk that an item names, ascending. The item
// was checked, see Validate; a bitmap is not read as a whole.
func ForEachRangeOf(it *ReportItem, chunk uint32, fn func(first, last uint32)) {
	if len(it.Bitmap) > 0 {
		if m, ok := parseBitmap(it.Bitmap); ok {
			if c, ok := m.find(chunk); ok {
				c.ranges(fn)
			}
		}
		return
	}
	lo, hi := chunk*ChunkSize, chunk*ChunkSize+(ChunkSize-1)
	if last := max(it.First, it.GetLast()); it.First <= hi && last >= lo {
		fn(max(it.First, lo), min(last, hi))
	}
}

// ItemSize returns how many tasks an item names and how many chunks of 65,536 indexes it touches. A bitmap's inside is
// not looked at.
func ItemSize(it *ReportItem) (tasks uint64, chunks int, err error) {
	if len(it.Bitmap) == 0 {
		last := it.First
		if it.Last != nil {
			last = *it.Last
		}
		if last < it.First {
			return 0, 0, FieldError{"/last", "smaller than first"}
		}
		return uint64(last-it.First) + 1, int(last/ChunkSize-it.First/ChunkSize) + 1, nil
	}
	m, ok := parseBitmap(it.Bitmap)
	if !ok || !m.each(func(c container) bool { tasks += uint64(c.card); return true }) {
		return 0, 0, ErrBitmap
	}
	return tasks, m.size, nil
}
