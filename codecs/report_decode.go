package codecs

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// reportOf1 is the memory of a report of one item, the bulk of all records: one allocation.
type reportOf1 struct {
	report BatchReport
	item   [1]ReportItem
	items  [1]*ReportItem
	last   [1]uint32
}

// Tags of the fields that the fast decoder knows: field number and wire type.
const (
	varint = uint64(protowire.VarintType)
	length = uint64(protowire.BytesType)

	reportRun      = 1<<3 | length
	reportRound    = 2<<3 | varint
	reportReporter = 3<<3 | length
	reportItems    = 4<<3 | length
	reportFeeder   = 7<<3 | varint
	reportLegs     = 8<<3 | varint

	itemFirst   = 1<<3 | varint
	itemLast    = 2<<3 | varint
	itemBitmap  = 3<<3 | length
	itemLeg     = 4<<3 | varint
	itemOutcome = 5<<3 | varint
	itemReason  = 6<<3 | length
	itemAttempt = 7<<3 | varint
)

// decodeReport reads a protobuf batch.report without reflection, equal to proto.Unmarshal. run and reporter point into
// v and are not set in the report; bitmaps point into v. ok is false for everything out of the ordinary (unknown fields,
// timing, children, damage): proto.Unmarshal must then decide.
func decodeReport(v []byte) (r *BatchReport, run, reporter []byte, ok bool) {
	n := countItems(v)
	if n < 0 {
		return nil, nil, nil, false
	}
	var slab []ReportItem
	var last []uint32
	if n <= 1 {
		one := new(reportOf1)
		r, slab, last = &one.report, one.item[:], one.last[:]
		if n == 1 {
			r.Items = one.items[:0]
		}
	} else {
		r, slab, last = new(BatchReport), make([]ReportItem, n), make([]uint32, n)
		r.Items = make([]*ReportItem, 0, n)
	}
	for len(v) > 0 {
		tag, k := protowire.ConsumeVarint(v) // well formed: countItems was here
		v = v[k:]
		x, k := protowire.ConsumeVarint(v)
		v = v[k:]
		var b []byte
		if tag&7 == length {
			b, v = v[:x:x], v[x:]
		}
		switch tag {
		case reportRun:
			run, ok = b, utf8.Valid(b)
		case reportReporter:
			reporter, ok = b, utf8.Valid(b)
		case reportItems:
			i := len(r.Items)
			ok = decodeItem(b, &slab[i], &last[i])
			r.Items = append(r.Items, &slab[i])
		case reportRound:
			r.Round, ok = uint32(x), true
		case reportFeeder:
			r.Feeder, ok = uint32(x), true
		case reportLegs:
			r.Legs, ok = uint32(x), true
		}
		if !ok {
			return nil, nil, nil, false
		}
	}
	return r, run, reporter, true
}

// countItems returns the number of items in a report, or -1 when the fast decoder must not try.
func countItems(v []byte) int {
	n := 0
	for len(v) > 0 {
		tag, k := protowire.ConsumeVarint(v)
		if k < 0 {
			return -1
		}
		v = v[k:]
		x, k := protowire.ConsumeVarint(v)
		if k < 0 {
			return -1
		}
		v = v[k:]
		switch tag {
		case reportItems:
			n++
			fallthrough
		case reportRun, reportReporter:
			if x > uint64(len(v)) {
				return -1
			}
			v = v[x:]
		case reportRound, reportFeeder, reportLegs:
		default:
			return -1
		}
	}
	return n
}

func decodeItem(v []byte, it *ReportItem, last *uint32) bool {
	for len(v) > 0 {
		tag, k := protowire.ConsumeVarint(v)
		if k < 0 {
			return false
		}
		v = v[k:]
		x, k := protowire.ConsumeVarint(v)
		if k < 0 {
			return false
		}
		v = v[k:]
		switch tag {
		case itemFirst:
			it.First = uint32(x)
		case itemLast:
			*last = uint32(x)
			it.Last = last
		case itemLeg:
			it.Leg = uint32(x)
		case itemOutcome:
			it.Outcome = Outcome_Code(int32(x))
		case itemAttempt:
			it.Attempt = uint32(x)
		case itemBitmap, itemReason:
			if x > uint64(len(v)) {
				return false
			}
			if tag == itemBitmap {
				it.Bitmap = v[:x:x]
			} else if it.Reason = string(v[:x]); !utf8.ValidString(it.Reason) {
				return false
			}
			v = v[x:]
		default:
			return false
		}
	}
	return true
}
