package codecs

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// Encoder makes records of events.
type Encoder struct {
	// Source is ce_source: /quiesce/<deployment>/<group or client id>, see Source.
	Source string
	// JSON writes the value as JSON of the same schema. Default: protobuf.
	JSON bool
}

// Source is the ce_source of a group or client of a deployment.
func Source(prefix, client string) string { return "/quiesce/" + prefix + "/" + client }

var (
	specVersion     = []byte("1.0")
	contentProtobuf = []byte(ContentProtobuf)
	contentJSON     = []byte(ContentJSON)
)

// Encode makes the record of an event with a protobuf value; see Encoder.Encode.
func Encode(topic, key, source string, ev *Event) (Record, error) {
	e := Encoder{Source: source}
	return e.Encode(topic, key, ev)
}

// Encode makes the record of an event: topic, key, CloudEvents headers, value (null when Data is nil). The partition is
// left to the producer (-1). Header values may be shared between records: they must not be written to.
func (e *Encoder) Encode(topic, key string, ev *Event) (Record, error) {
	rec := Record{Topic: topic, Partition: -1}
	size := 0
	report, _ := ev.Data.(*BatchReport)
	switch {
	case ev.Data == nil || e.JSON:
	case report != nil:
		size = reportBytes(report)
	default:
		size = proto.Size(ev.Data)
	}
	src := ""
	if ev.Src.Group != "" {
		src = ev.Src.String()
	}
	p := packed{buf: make([]byte, 0, size+len(key)+len(ev.ID)+len(e.Source)+len(ev.Subject)+len(ev.Traceparent)+len(src))}
	if ev.Data != nil {
		v, err := e.value(p.buf, ev.Data)
		if err != nil {
			return rec, fmt.Errorf("encode %s of %s: %w", ev.Type, key, err)
		}
		rec.Value, p.buf = v[:len(v):len(v)], v[len(v):]
	}
	rec.Key = p.add(key)
	subject := BatchOf(rec.Key)
	if ev.Subject != "" && ev.Subject != string(subject) {
		subject = p.add(ev.Subject)
	}
	wire := []byte(nil)
	if k, ok := kindsByName[ev.Type]; ok {
		wire = k.wire
	} else {
		return rec, fmt.Errorf("encode %q of %s: %w", ev.Type, key, ErrUnknownType)
	}
	content := contentProtobuf
	if e.JSON {
		content = contentJSON
	}
	rec.Headers = append(make([]Header, 0, 8),
		Header{HeaderSpecVersion, specVersion},
		Header{HeaderID, p.add(ev.ID)},
		Header{HeaderSource, p.add(e.Source)},
		Header{HeaderType, wire},
		Header{HeaderSubject, subject},
		Header{HeaderContentType, content},
	)
	if ev.Traceparent != "" {
		rec.Headers = append(rec.Headers, Header{HeaderTraceparent, p.add(ev.Traceparent)})
	}
	if src != "" {
		rec.Headers = append(rec.Headers, Header{HeaderSrc, p.add(src)})
	}
	return rec, nil
}

// value appends the encoded data to b; never nil, so that an empty message is not a null value.
func (e *Encoder) value(b []byte, m proto.Message) ([]byte, error) {
	if e.JSON {
		return JSON(m)
	}
	if r, ok := m.(*BatchReport); ok && r != nil {
		if v, ok := appendReport(b, r); ok {
			return v, nil
		}
	}
	v, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, m)
	if err == nil && v == nil {
		v = []byte{}
	}
	return v, err
}

// packed cuts byte slices from one allocation.
type packed struct{ buf []byte }

func (p *packed) add(s string) []byte {
	p.buf = append(p.buf, s...)
	b := p.buf[:len(s):len(s)]
	p.buf = p.buf[len(s):]
	return b
}
