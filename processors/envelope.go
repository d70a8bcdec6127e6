package processors

import (
	"encoding/binary"
	"fmt"

	"github.com/quiesce/quiesce/codecs"
)

// Envelope is what the runtime keeps beside a machine's row in a table record. It stands behind the row
// (codecs.AppendRow):
//
//	flags u8 | epoch | spans: n, (from, to, reason)* | outbox: n, entries*     numbers are uvarints, to = 0: open
//	entry: source | index | topic | key | headers: n, (name, value)* | value+1 (0 = null)
//
// An empty envelope of a header row has no bytes.
type Envelope struct {
	Claim   uint64 // changelog offset of the claim record of the owner that wrote it
	Applied int64  // highest input offset that is in the row
	Part    bool   // a part row
	Epoch   uint64 // number of adoptions of input topics when it was written
	Spans   []Span // offsets during which the row was quarantined
	outbox  []*output
}

// Span is a range of input offsets [From, To) whose records of one key went to the dead letter. To = 0: still open.
type Span struct {
	From, To int64
	Reason   string
}

const (
	flagPart = 1 << iota
)

// Quarantined says whether the row is quarantined now.
func (e *Envelope) Quarantined() bool { return len(e.Spans) > 0 && e.Spans[len(e.Spans)-1].To == 0 }

// setAside returns the span that input offset o falls into.
func (e *Envelope) setAside(o int64) (Span, bool) {
	for _, s := range e.Spans {
		if o >= s.From && (s.To == 0 || o < s.To) {
			return s, true
		}
	}
	return Span{}, false
}

func (e *Envelope) appendTail(b []byte) []byte {
	if !e.Part && e.Epoch == 0 && len(e.Spans) == 0 && len(e.outbox) == 0 {
		return b
	}
	var flags byte
	if e.Part {
		flags |= flagPart
	}
	b = append(b, flags)
	b = binary.AppendUvarint(b, e.Epoch)
	b = binary.AppendUvarint(b, uint64(len(e.Spans)))
	for _, s := range e.Spans {
		b = binary.AppendUvarint(b, uint64(s.From))
		b = binary.AppendUvarint(b, uint64(s.To))
		b = appendBytes(b, s.Reason)
	}
	b = binary.AppendUvarint(b, uint64(len(e.outbox)))
	for _, o := range e.outbox {
		b = o.append(b)
	}
	return b
}

// AppendRow appends the value of a table record: what ParseEnvelope reads.
func (e *Envelope) AppendRow(b, row []byte) []byte {
	return codecs.AppendRow(b, codecs.RowHeader{Format: codecs.RowFormat, Claim: e.Claim, Applied: e.Applied}, row, e.appendTail(nil))
}

// ParseEnvelope splits a table record's value into the envelope and the machine's row. Both share memory with v.
// Reserved records (codecs.IsReserved) have no envelope.
func ParseEnvelope(v []byte) (Envelope, []byte, error) {
	h, row, tail, err := codecs.ParseRow(v)
	if err != nil {
		return Envelope{}, nil, err
	}
	e := Envelope{Claim: h.Claim, Applied: h.Applied}
	if len(tail) == 0 {
		return e, row, nil
	}
	r := reader{b: tail}
	e.Part = r.byte()&flagPart != 0
	e.Epoch = r.uvarint()
	for n := r.count(); n > 0 && r.err == nil; n-- {
		e.Spans = append(e.Spans, Span{From: int64(r.uvarint()), To: int64(r.uvarint()), Reason: string(r.bytes())})
	}
	for n := r.count(); n > 0 && r.err == nil; n-- {
		e.outbox = append(e.outbox, r.output())
	}
	return e, row, r.err
}

// reader reads the numbers and byte strings of a record; the first fault stays in err.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", codecs.ErrNotARow, what)
	}
	r.b = nil
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail("flags missing")
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) uvarint() uint64 {
	n, k := binary.Uvarint(r.b)
	if k <= 0 {
		r.fail("number cut short")
		return 0
	}
	r.b = r.b[k:]
	return n
}

// count reads the number of elements that follow; each has at least one byte.
func (r *reader) count() uint64 {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.fail("count")
		return 0
	}
	return n
}

func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.fail("length")
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

func appendBytes[T string | []byte](b []byte, v T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}
