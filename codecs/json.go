package codecs

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// JSON prints data as one line: snake_case names, enums by lower-case name, 32-bit numbers as numbers, 64-bit numbers as
// strings, bytes in base64. Fields with their default are left out. The same data always gives the same bytes.
func JSON(m proto.Message) ([]byte, error) { return printJSON(m, false) }

// FullJSON is JSON with all fields, also those that have their default (absent messages stay absent).
func FullJSON(m proto.Message) ([]byte, error) { return printJSON(m, true) }

func printJSON(m proto.Message, full bool) ([]byte, error) {
	b, err := protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: full}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer // protojson varies its white space on purpose
	out.Grow(len(b))
	if err := json.Compact(&out, b); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// UnmarshalJSON reads what JSON prints; 64-bit numbers also as numbers, enums also as numbers, names also in camelCase.
// Fields that this release does not know are ignored (JSON cannot carry them on); an enum name that it does not know is
// an error. Errors are of type FieldErrors where the field is known.
func UnmarshalJSON(b []byte, m proto.Message) error { return unmarshalJSON(b, m, false) }

// UnmarshalStrictJSON is UnmarshalJSON with unknown fields as errors.
func UnmarshalStrictJSON(b []byte, m proto.Message) error { return unmarshalJSON(b, m, true) }

func unmarshalJSON(b []byte, m proto.Message, strict bool) error {
	err := protojson.Unmarshal(b, m)
	if err == nil {
		return nil
	}
	// Off the usual path: find the field, or leave unknown fields out and try again.
	p := pruner{strict: strict}
	pruned := p.message(b, m.ProtoReflect().Descriptor(), "")
	if len(p.errs) > 0 {
		return p.errs
	}
	if pruned == nil {
		return err
	}
	return protojson.Unmarshal(pruned, m)
}

// pruner copies a JSON object without the fields that its schema does not have, and notes what cannot be decoded.
type pruner struct {
	strict bool
	errs   FieldErrors
}

// message returns the pruned object, or nil when b is not an object.
func (p *pruner) message(b []byte, d protoreflect.MessageDescriptor, at string) []byte {
	return p.object(b, at, func(name string, v json.RawMessage, at string) []byte {
		f := d.Fields().ByTextName(name)
		if f == nil {
			f = d.Fields().ByJSONName(name)
		}
		if f == nil {
			if p.strict {
				p.errs.add(at, "unknown field")
			}
			return nil
		}
		return p.field(v, f, at)
	})
}

func (p *pruner) object(b []byte, at string, each func(name string, v json.RawMessage, at string) []byte) []byte {
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		p.errs.add(at, "not a JSON object")
		return nil
	}
	out := []byte{'{'}
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		var v json.RawMessage
		if err != nil || !ok || dec.Decode(&v) != nil {
			p.errs.add(at, "damaged JSON")
			return nil
		}
		v = each(name, v, at+"/"+escapePointer(name))
		if v == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		quoted, _ := json.Marshal(name)
		out = append(append(append(out, quoted...), ':'), v...)
	}
	if _, err := dec.Token(); err != nil {
		p.errs.add(at, "damaged JSON")
		return nil
	}
	if at == "" && len(bytes.TrimSpace(b[dec.InputOffset():])) > 0 {
		p.errs.add(at, "more than one JSON value")
		return nil
	}
	return append(out, '}')
}

func (p *pruner) field(v json.RawMessage, f protoreflect.FieldDescriptor, at string) []byte {
	if string(v) == "null" {
		return v
	}
	switch {
	case f.IsMap():
		return p.object(v, at, func(_ string, v json.RawMessage, at string) []byte { return p.value(v, f.MapValue(), at) })
	case f.IsList():
		var list []json.RawMessage
		if json.Unmarshal(v, &list) != nil {
			p.errs.add(at, "not a JSON array")
			return nil
		}
		out := []byte{'['}
		for i, e := range list {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, p.value(e, f, at+"/"+itoa(i))...)
		}
		return append(out, ']')
	}
	return p.value(v, f, at)
}

func (p *pruner) value(v json.RawMessage, f protoreflect.FieldDescriptor, at string) []byte {
	if f.Kind() == protoreflect.MessageKind {
		return p.message(v, f.Message(), at)
	}
	if reason := scalarFault(v, f); reason != "" {
		p.errs.add(at, reason)
	}
	return v
}
