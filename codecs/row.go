package codecs

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Row is the decoded state of one table record: a header row (key = batch or job id) or a part row that lives on the
// same partition (key = id 0x00 ...). Its machine owns the type; the runtime moves it.
type Row interface {
	// AppendBinary appends the row's bytes to b. Called once per cut, whatever the number of events in it.
	AppendBinary(b []byte) ([]byte, error)
	// String is one stable line.
	String() string
}

// RowHeader starts the value of every record of a table and of the compacted outputs that follow it.
//
//	0      1       2          10          18
//	+------+-------+----------+-----------+------------------+----------+
//	| 0x51 | format| claim u64| applied   | row: uvarint len | outbox.. |
//	|      |       | BE       | i64 BE    | + bytes          |          |
//	+------+-------+----------+-----------+------------------+----------+
//
// Claim is the changelog offset of the claim record of the owner that wrote it; Applied the highest input offset that
// is in the row.
type RowHeader struct {
	Format  uint8
	Claim   uint64
	Applied int64
}

const (
	rowMagic      = 0x51
	rowHeaderSize = 18
	// RowFormat is the format that this release writes. It reads this and all lower ones.
	RowFormat = 1
)

// Errors of ParseRow.
var (
	ErrNotARow   = errors.New("not a row")
	ErrNewFormat = errors.New("row format is newer than this release")
)

// AppendRow appends a table record's value to b: the header, the machine's row, the outbox.
func AppendRow(b []byte, h RowHeader, row, outbox []byte) []byte {
	b = append(b, rowMagic, h.Format)
	b = binary.BigEndian.AppendUint64(b, h.Claim)
	b = binary.BigEndian.AppendUint64(b, uint64(h.Applied))
	b = binary.AppendUvarint(b, uint64(len(row)))
	b = append(b, row...)
	return append(b, outbox...)
}

// ParseRowHeader reads the fixed header alone: enough to compare two records without decoding them.
func ParseRowHeader(v []byte) (RowHeader, error) {
	if len(v) < rowHeaderSize || v[0] != rowMagic {
		return RowHeader{}, ErrNotARow
	}
	h := RowHeader{Format: v[1], Claim: binary.BigEndian.Uint64(v[2:]), Applied: int64(binary.BigEndian.Uint64(v[10:]))}
	if h.Format > RowFormat {
		return h, fmt.Errorf("%w: %d, this release reads up to %d", ErrNewFormat, h.Format, RowFormat)
	}
	return h, nil
}

// ParseRow splits a table record's value. The slices share memory with v.
func ParseRow(v []byte) (h RowHeader, row, outbox []byte, err error) {
	if h, err = ParseRowHeader(v); err != nil {
		return h, nil, nil, err
	}
	v = v[rowHeaderSize:]
	n, k := binary.Uvarint(v)
	if k <= 0 || n > uint64(len(v)-k) {
		return h, nil, nil, fmt.Errorf("%w: row length", ErrNotARow)
	}
	v = v[k:]
	return h, v[:n], v[n:], nil
}
