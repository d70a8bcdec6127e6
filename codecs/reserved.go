package codecs

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Reserved keys of a table partition. They start with 0x00, so no id can equal them, and are sent to their partition
// explicitly.
const (
	ClaimKey    = "\x00claim"
	PositionKey = "\x00position"
	AdoptKey    = "\x00adopt"
)

// IsReserved says whether a table key is one of the reserved ones and not a row.
func IsReserved(key []byte) bool { return len(key) > 0 && key[0] == 0 }

// TopicID is Kafka's id of one incarnation of a topic: a topic that is deleted and created again has another one.
type TopicID [16]byte

// String is 32 hex digits.
func (t TopicID) String() string { return hex.EncodeToString(t[:]) }

// ParseTopicID reads what String prints.
func ParseTopicID(s string) (TopicID, error) {
	var t TopicID
	if len(s) != 2*len(t) {
		return t, fmt.Errorf("topic id %q: not 32 hex digits", clip([]byte(s)))
	}
	if _, err := hex.Decode(t[:], []byte(s)); err != nil {
		return t, fmt.Errorf("topic id %q: not 32 hex digits", clip([]byte(s)))
	}
	return t, nil
}

// Position is the position row of a table partition: below Offset of the input partition (of this incarnation of the
// topic) every row and every output is durable. Consumption starts there.
//
//	0           16         24
//	+-----------+----------+
//	| topic id  | i64 BE   |   the row part of AppendRow; the header's Applied is Offset - 1
//	+-----------+----------+
type Position struct {
	Topic  TopicID
	Offset int64
}

// AppendBinary appends the row's bytes.
func (p Position) AppendBinary(b []byte) ([]byte, error) {
	return binary.BigEndian.AppendUint64(append(b, p.Topic[:]...), uint64(p.Offset)), nil
}

// String is one stable line.
func (p Position) String() string { return fmt.Sprintf("position %s %d", p.Topic, p.Offset) }

// ParsePosition reads what AppendBinary wrote; more bytes may follow in later releases.
func ParsePosition(b []byte) (Position, error) {
	var p Position
	if len(b) < 24 {
		return p, fmt.Errorf("%w: position of %d bytes", ErrNotARow, len(b))
	}
	copy(p.Topic[:], b)
	if p.Offset = int64(binary.BigEndian.Uint64(b[16:])); p.Offset < 0 {
		return p, fmt.Errorf("%w: position %d", ErrNotARow, p.Offset)
	}
	return p, nil
}
