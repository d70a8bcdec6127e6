package codecs

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// appendReport appends the protobuf form of a report, byte for byte that of proto.Marshal, without reflection. ok is
// false for what it leaves to proto.Marshal: timing, children, unknown fields, invalid UTF-8, a nil item.
func appendReport(b []byte, r *BatchReport) (out []byte, ok bool) {
	if r.Timing != nil || r.Children != nil || r.unknownFields != nil || !utf8.ValidString(r.Run) || !utf8.ValidString(r.Reporter) {
		return b, false
	}
	b = appendText(b, reportRun, r.Run)
	b = appendNumber(b, reportRound, uint64(r.Round))
	b = appendText(b, reportReporter, r.Reporter)
	for _, it := range r.Items {
		if it == nil || it.unknownFields != nil || !utf8.ValidString(it.Reason) {
			return b, false
		}
		b = protowire.AppendVarint(b, reportItems)
		b = protowire.AppendVarint(b, uint64(itemBytes(it)))
		b = appendItem(b, it)
	}
	b = appendNumber(b, reportFeeder, uint64(r.Feeder))
	return appendNumber(b, reportLegs, uint64(r.Legs)), true
}

func appendItem(b []byte, it *ReportItem) []byte {
	b = appendNumber(b, itemFirst, uint64(it.First))
	if it.Last != nil {
		b = protowire.AppendVarint(b, itemLast)
		b = protowire.AppendVarint(b, uint64(*it.Last))
	}
	if len(it.Bitmap) > 0 {
		b = protowire.AppendVarint(b, itemBitmap)
		b = protowire.AppendBytes(b, it.Bitmap)
	}
	b = appendNumber(b, itemLeg, uint64(it.Leg))
	b = appendNumber(b, itemOutcome, uint64(int64(it.Outcome)))
	b = appendText(b, itemReason, it.Reason)
	return appendNumber(b, itemAttempt, uint64(it.Attempt))
}

// itemBytes is the length of what appendItem appends. All tags take one byte.
func itemBytes(it *ReportItem) int {
	n := numberBytes(uint64(it.First)) + numberBytes(uint64(it.Leg)) + numberBytes(uint64(int64(it.Outcome))) +
		numberBytes(uint64(it.Attempt))
	if it.Last != nil {
		n += 1 + protowire.SizeVarint(uint64(*it.Last))
	}
	if len(it.Bitmap) > 0 {
		n += 1 + protowire.SizeBytes(len(it.Bitmap))
	}
	if it.Reason != "" {
		n += 1 + protowire.SizeBytes(len(it.Reason))
	}
	return n
}

func numberBytes(x uint64) int {
	if x == 0 {
		return 0
	}
	return 1 + protowire.SizeVarint(x)
}

func appendNumber(b []byte, tag, x uint64) []byte {
	if x == 0 {
		return b
	}
	return protowire.AppendVarint(append(b, byte(tag)), x)
}

func appendText(b []byte, tag uint64, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(append(b, byte(tag)), s)
}

// reportBytes bounds the length of what appendReport appends.
func reportBytes(r *BatchReport) int {
	n := len(r.Run) + len(r.Reporter) + 30
	for _, it := range r.Items {
		if it != nil {
			n += 6 + itemBytes(it)
		}
	}
	return n
}
