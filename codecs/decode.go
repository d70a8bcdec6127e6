package codecs

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"
)

// attributes are the header values of an event, still in the record's memory.
type attributes struct {
	kind                                 *kind
	id, source, subject, trace, src, typ []byte
	content                              []byte
	spec                                 []byte
}

// read collects the headers; of a repeated name the last one counts.
func (a *attributes) read(hs []Header) {
	for i := range hs {
		v := hs[i].Value
		switch hs[i].Key {
		case HeaderType:
			a.typ = v
		case HeaderID:
			a.id = v
		case HeaderSource:
			a.source = v
		case HeaderSubject:
			a.subject = v
		case HeaderSpecVersion:
			a.spec = v
		case HeaderContentType:
			a.content = v
		case HeaderTraceparent:
			a.trace = v
		case HeaderSrc:
			a.src = v
		}
	}
}

// Decode reads an input record into ev. Byte fields of the data share memory with the record; nothing else does. An
// error wraps one of ErrNoKey, ErrNoType, ErrUnknownType, ErrVersion, ErrContent, ErrData. A traceparent that is not one
// is ignored, as W3C asks. Values of compacted topics may stand behind a row header (AppendRow). Decoding into the same Event again is cheaper than into a new one.
func Decode(rec *Record, ev *Event) error {
	key := BatchOf(rec.Key)
	if len(key) == 0 {
		return ErrNoKey
	}
	var a attributes
	a.read(rec.Headers)
	if len(a.typ) == 0 {
		return ErrNoType
	}
	var err error
	if a.kind, err = kindOf(a.typ); err != nil {
		return err
	}
	if len(a.spec) > 0 && !bytes.HasPrefix(a.spec, []byte("1.")) {
		return fmt.Errorf("%w: %s %q", ErrVersion, HeaderSpecVersion, clip(a.spec))
	}
	var src Src
	if a.src != nil {
		if src, err = ParseSrc(a.src); err != nil {
			return err
		}
	}
	value := rec.Value
	if a.kind.nullable && len(value) > 0 && value[0] == rowMagic { // no protobuf or JSON of these starts so
		if _, value, _, err = ParseRow(value); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrData, a.kind.name, err)
		}
	}
	isJSON, err := a.isJSON(value)
	if err != nil {
		return err
	}
	if len(a.subject) == 0 || bytes.Equal(a.subject, key) {
		a.subject = nil
	}
	if len(a.trace) > 0 && !ValidTraceparent(a.trace) {
		a.trace = nil
	}
	data, run, reporter, err := a.data(value, isJSON)
	if err != nil {
		return err
	}
	a.fill(ev, key, run, reporter, data)
	ev.Time, ev.Partition, ev.Src = rec.Time, rec.Partition, src
	return nil
}

// isJSON decides the encoding by content type; without one it looks at the value. No protobuf message of ours starts
// with '{' (field 15, group), and one that starts with a space character is not JSON as a whole.
func (a *attributes) isJSON(value []byte) (bool, error) {
	if len(a.content) == 0 {
		if len(value) > 0 && value[0] == '{' {
			return true, nil
		}
		v := bytes.TrimLeft(value, " \t\r\n")
		return len(v) > 0 && v[0] == '{' && json.Valid(v), nil
	}
	if string(a.content) == ContentProtobuf {
		return false, nil
	}
	t, _, _ := bytes.Cut(bytes.ToLower(a.content), []byte(";"))
	switch string(bytes.TrimSpace(t)) {
	case ContentJSON:
		return true, nil
	case ContentProtobuf, "application/x-protobuf":
		return false, nil
	}
	return false, fmt.Errorf("%w: %q", ErrContent, clip(a.content))
}

// data decodes the value. For reports it also returns the strings that are still to be set (see fill).
func (a *attributes) data(value []byte, isJSON bool) (m proto.Message, run, reporter []byte, err error) {
	k := a.kind
	switch {
	case value == nil && k.nullable:
		return nil, nil, nil, nil
	case value == nil && !k.bare:
		return nil, nil, nil, fmt.Errorf("%w: %s: null value", ErrData, k.name)
	case k == reportKind && !isJSON:
		if r, run, reporter, ok := decodeReport(value); ok {
			return r, run, reporter, nil
		}
	}
	m = k.new()
	if isJSON {
		err = UnmarshalJSON(value, m)
	} else {
		err = proto.Unmarshal(value, m)
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%w: %s: %w", ErrData, k.name, err)
	}
	return m, nil, nil, nil
}

// fill sets the event's strings. All of them are cut from one allocation, but for those that the event had before.
func (a *attributes) fill(ev *Event, key, run, reporter []byte, data proto.Message) {
	was := *ev
	*ev = Event{Type: a.kind.name, Data: data}
	r, _ := data.(*BatchReport)
	wasReport, _ := was.Data.(*BatchReport)
	var text texts
	text.add(key, was.Key, &ev.Key)
	text.add(a.id, was.ID, &ev.ID)
	text.add(a.source, was.Source, &ev.Source)
	text.add(a.trace, was.Traceparent, &ev.Traceparent)
	text.add(a.subject, was.Subject, &ev.Subject)
	if r != nil {
		if run != nil {
			text.add(run, wasReport.GetRun(), &r.Run)
		}
		if reporter != nil {
			text.add(reporter, wasReport.GetReporter(), &r.Reporter)
		}
	}
	text.set()
	if a.subject == nil {
		ev.Subject = ev.Key
	}
}

// texts turns byte slices into strings with one allocation.
type texts struct {
	buf  [256]byte
	n, k int
	to   [7]*string
	size [7]int
}

func (t *texts) add(b []byte, was string, to *string) {
	switch {
	case len(b) == 0:
	case string(b) == was:
		*to = was
	case len(b) > len(t.buf)-t.n:
		*to = string(b)
	default:
		copy(t.buf[t.n:], b)
		t.to[t.k], t.size[t.k] = to, len(b)
		t.n, t.k = t.n+len(b), t.k+1
	}
}

func (t *texts) set() {
	s := string(t.buf[:t.n])
	for i := range t.to[:t.k] {
		*t.to[i], s = s[:t.size[i]], s[t.size[i]:]
	}
}
