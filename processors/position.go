package processors

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/quiesce/quiesce/codecs"
)

// position is the content of the position row: codecs.Position, then what the input below it leaves behind:
//
//	epoch | marks: n, (group, topic id, partition, offset, index)*     numbers are uvarints
type position struct {
	codecs.Position
	epoch uint64
	marks marks
}

func (p *position) encode(claim uint64) []byte {
	row, _ := p.AppendBinary(nil)
	row = binary.AppendUvarint(row, p.epoch)
	row = p.marks.append(row)
	h := codecs.RowHeader{Format: codecs.RowFormat, Claim: claim, Applied: p.Offset - 1}
	return codecs.AppendRow(nil, h, row, nil)
}

func parsePosition(v []byte) (position, error) {
	_, row, _, err := codecs.ParseRow(v)
	if err != nil {
		return position{}, fmt.Errorf("position row: %w", err)
	}
	p := position{marks: marks{}}
	if p.Position, err = codecs.ParsePosition(row); err != nil {
		return p, err
	}
	if len(row) == 24 {
		return p, nil
	}
	r := reader{b: row[24:]}
	p.epoch = r.uvarint()
	for n := r.count(); n > 0 && r.err == nil; n-- {
		k := origin{group: string(r.bytes())}
		copy(k.topic[:], r.bytes())
		k.partition = int32(r.uvarint())
		p.marks[k] = mark{int64(r.uvarint()), int32(r.uvarint())}
	}
	if r.err != nil {
		return p, fmt.Errorf("position row: %w", r.err)
	}
	return p, nil
}

// marks say, per source partition, which machine-emitted input was the last. They are a function of the input log: a
// position row holds the marks at its offset, so that a replay from there drops what was dropped the first time.
type marks map[origin]mark

type origin struct {
	group     string
	topic     [16]byte
	partition int32
}

type mark struct {
	offset int64
	index  int32
}

// repeat says whether src was seen before, and remembers it.
func (m marks) repeat(src *codecs.Src) bool {
	k := origin{src.Group, src.TopicID, src.Partition}
	last, ok := m[k]
	if ok && (src.Offset < last.offset || src.Offset == last.offset && src.Index <= last.index) {
		return true
	}
	m[k] = mark{src.Offset, src.Index}
	return false
}

func (m marks) append(b []byte) []byte {
	keys := make([]origin, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b origin) int {
		return slices.Compare(fmt.Appendf(nil, "%s %x %10d", a.group, a.topic, a.partition), fmt.Appendf(nil, "%s %x %10d", b.group, b.topic, b.partition))
	})
	b = binary.AppendUvarint(b, uint64(len(keys)))
	for _, k := range keys {
		b = appendBytes(b, k.group)
		b = appendBytes(b, k.topic[:])
		b = binary.AppendUvarint(b, uint64(k.partition))
		b = binary.AppendUvarint(b, uint64(m[k].offset))
		b = binary.AppendUvarint(b, uint64(m[k].index))
	}
	return b
}
