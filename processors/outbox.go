package processors

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/quiesce/quiesce/codecs"
)

// output is a record to send, decided by the input at source. It stays in the outbox of its row until it is
// acknowledged and the row is written again; dead letters and re-routed records have no row: a replay makes them anew.
type output struct {
	source  int64
	index   int32
	topic   string // logical name
	toPart  int32  // -1 = by key
	key     []byte
	headers []codecs.Header
	value   []byte // nil = null
}

func (o *output) size() int {
	n := len(o.key) + len(o.value) + 32
	for _, h := range o.headers {
		n += len(h.Key) + len(h.Value) + 2
	}
	return n
}

// acked drops the outputs of inputs below done from the row's outbox: those cuts are wholly done, so they are
// acknowledged. In the record of the row they stay until it is written again.
func (e *entry) acked(done int64) {
	kept := e.outbox[:0]
	e.outBytes = 0
	for _, o := range e.outbox {
		if o.source >= done {
			kept = append(kept, o)
			e.outBytes += o.size()
		}
	}
	clear(e.outbox[len(kept):])
	if e.outbox = kept; len(kept) == 0 {
		e.outbox = nil
	}
}

func (o *output) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(o.source))
	b = binary.AppendUvarint(b, uint64(o.index))
	b = appendBytes(b, o.topic)
	b = appendBytes(b, o.key)
	b = binary.AppendUvarint(b, uint64(len(o.headers)))
	for _, h := range o.headers {
		b = appendBytes(b, h.Key)
		b = appendBytes(b, h.Value)
	}
	if o.value == nil {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(o.value))+1)
	return append(b, o.value...)
}

// output reads one entry; it owns its memory.
func (r *reader) output() *output {
	o := &output{source: int64(r.uvarint()), index: int32(r.uvarint()), topic: string(r.bytes()), toPart: -1, key: bytes.Clone(r.bytes())}
	for n := r.count(); n > 0 && r.err == nil; n-- {
		o.headers = append(o.headers, codecs.Header{Key: codecs.HeaderName(r.bytes()), Value: bytes.Clone(r.bytes())})
	}
	if n := r.uvarint(); n > 0 && r.err == nil {
		if n-1 > uint64(len(r.b)) {
			r.fail("value length")
			return o
		}
		o.value = append([]byte{}, r.b[:n-1]...)
		r.b = r.b[n-1:]
	}
	return o
}

// encode makes the output of a machine's message.
func (e *env) encode(partition int32, source int64, index int32, m *codecs.Message) (*output, error) {
	src := codecs.Src{Group: e.group, TopicID: e.topicID, Partition: partition, Offset: source, Index: index}
	id := m.ID
	if id == "" {
		id = src.String()
	}
	rec, err := codecs.Encode(m.Topic, m.Key, e.source, &codecs.Event{Type: m.Type, ID: id, Traceparent: m.Trace, Src: src, Data: m.Data})
	if err != nil {
		return nil, fmt.Errorf("output %d of offset %d: %w", index, source, err)
	}
	return &output{source: source, index: index, topic: m.Topic, toPart: -1, key: rec.Key, headers: rec.Headers, value: rec.Value}, nil
}
