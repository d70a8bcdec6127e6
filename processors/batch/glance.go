package batch

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/quiesce/quiesce/codecs"
)

// Tags (number << 3 | wire type) of what Glance reads of BatchRow and RunRow.
const (
	tagFormat   = 1<<3 | uint64(protowire.VarintType)
	tagNow      = 4<<3 | uint64(protowire.VarintType)
	tagRun      = 5<<3 | uint64(protowire.BytesType)
	tagNext     = 6<<3 | uint64(protowire.BytesType)
	tagRunState = 2<<3 | uint64(protowire.VarintType)
	tagRunEnded = 6<<3 | uint64(protowire.VarintType)
)

// Glance recognizes the row of a collected batch: nothing is left of it but its marker, and chunks to delete. Most rows
// of a table that has been in use for long are of that kind.
func (m *Machine) Glance(b []byte) (deadline int64, settled bool) {
	var now, endedAt int64
	var state codecs.State_Code
	run := func(tag, v uint64, _ []byte) bool {
		switch tag {
		case tagRunState:
			state = codecs.State_Code(v)
		case tagRunEnded:
			endedAt = int64(v)
		}
		return true
	}
	known := eachField(b, func(tag, v uint64, sub []byte) bool {
		switch tag {
		case tagFormat:
			return uint32(v) <= rowFormat
		case tagNow:
			now = int64(v)
		case tagNext:
			return false
		case tagRun:
			return eachField(sub, run)
		}
		return true
	})
	deadline = endedAt + m.cfg.MarkerTTL
	if !known || state != codecs.State_collected || now >= deadline {
		return 0, false
	}
	return deadline, true
}

// eachField calls fn with the tags and values of a message until it returns false: v of a number, b of bytes.
func eachField(b []byte, fn func(tag, v uint64, b []byte) bool) bool {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return false
		}
		b = b[n:]
		var v uint64
		var sub []byte
		switch typ {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			sub, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 || !fn(protowire.EncodeTag(num, typ), v, sub) {
			return false
		}
		b = b[n:]
	}
	return true
}
