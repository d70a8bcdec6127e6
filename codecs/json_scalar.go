package codecs

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// scalarFault says what is wrong with the JSON value of a scalar field; "" = nothing. The judge is protojson: the value
// is decoded as the only field of an otherwise empty message.
func scalarFault(v json.RawMessage, f protoreflect.FieldDescriptor) string {
	if plainScalar(v, f.Kind()) {
		return ""
	}
	d := f.ContainingMessage()
	if f.IsList() {
		v = append(append(json.RawMessage{'['}, v...), ']')
	}
	name, _ := json.Marshal(string(f.Name()))
	doc := append(append(append(append([]byte{'{'}, name...), ':'), v...), '}')
	if protojson.Unmarshal(doc, dynamicpb.NewMessage(d)) == nil {
		return ""
	}
	switch f.Kind() {
	case protoreflect.EnumKind:
		return "not one of " + strings.Join(enumNames(f.Enum()), " ")
	case protoreflect.StringKind:
		return "not a string of valid UTF-8"
	case protoreflect.BytesKind:
		return "not a base64 string"
	case protoreflect.BoolKind:
		return "not true or false"
	case protoreflect.Uint32Kind:
		return "not a whole number from 0 to 4294967295"
	case protoreflect.Uint64Kind:
		return "not a whole number from 0 to 18446744073709551615"
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		return "not a whole number that fits"
	}
	return "not a number"
}

// plainScalar says quickly that a value is right; false = not known.
func plainScalar(v json.RawMessage, k protoreflect.Kind) bool {
	switch k {
	case protoreflect.StringKind:
		return v[0] == '"' && !bytes.Contains(v, []byte(`\u`)) && utf8.Valid(v)
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Int32Kind, protoreflect.Int64Kind:
		return len(v) < 10 && strings.Trim(string(v), "0123456789") == ""
	}
	return false
}

func enumNames(d protoreflect.EnumDescriptor) []string {
	names := make([]string, d.Values().Len())
	for i := range names {
		names[i] = string(d.Values().Get(i).Name())
	}
	return names
}

func itoa(i int) string { return strconv.Itoa(i) }

// escapePointer writes a name as one token of a JSON pointer (RFC 6901).
func escapePointer(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}
