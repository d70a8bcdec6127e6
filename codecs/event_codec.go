package codecs

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Names of headers.
const (
	HeaderSpecVersion = "ce_specversion"
	HeaderID          = "ce_id"
	HeaderSource      = "ce_source"
	HeaderType        = "ce_type"
	HeaderSubject     = "ce_subject"
	HeaderContentType = "content-type"
	HeaderTraceparent = "traceparent"
	HeaderSrc         = "quiesce-src" // see Src
	HeaderMoved       = "quiesce-moved"

	// On the user's records.
	HeaderBatch   = "quiesce-batch"
	HeaderRun     = "quiesce-run"
	HeaderIndex   = "quiesce-index"
	HeaderRound   = "quiesce-round"
	HeaderControl = "quiesce-control"
	HeaderUnit    = "quiesce-source" // on END markers: <stage>/<topic>/<partition>

	ContentProtobuf = "application/protobuf"
	ContentJSON     = "application/json"
)

// Errors of Decode. Each ends the record in the dead letter with its text.
var (
	ErrNoKey       = errors.New("record without key")
	ErrNoType      = errors.New("record without ce_type")
	ErrUnknownType = errors.New("unknown event type")
	ErrVersion     = errors.New("event version is newer than this release")
	ErrData        = errors.New("event data does not decode")
)

// TypeName splits ce_type quiesce.<name>.v<n> into the name; an error names what is wrong.
func TypeName(ceType string) (string, error) {
	rest, ok := strings.CutPrefix(ceType, "quiesce.")
	i := strings.LastIndex(rest, ".v")
	if !ok || i < 0 {
		return "", fmt.Errorf("%w: %q", ErrUnknownType, ceType)
	}
	name, version := rest[:i], rest[i+2:]
	if _, ok := prototypes[name]; !ok {
		return "", fmt.Errorf("%w: %q", ErrUnknownType, ceType)
	}
	if version != "1" {
		return "", fmt.Errorf("%w: %q", ErrVersion, ceType)
	}
	return name, nil
}

// Decode reads an input record into ev. The event shares memory with the record. An error wraps one of ErrNoKey,
// ErrNoType, ErrUnknownType, ErrVersion, ErrData.
func Decode(rec *Record, ev *Event) error {
	if len(rec.Key) == 0 {
		return ErrNoKey
	}
	*ev = Event{Key: string(BatchOf(rec.Key)), Time: rec.Time, Partition: rec.Partition}
	json := false
	contentType := false
	for i := range rec.Headers {
		v := rec.Headers[i].Value
		switch rec.Headers[i].Key {
		case HeaderType:
			name, err := TypeName(string(v))
			if err != nil {
				return err
			}
			ev.Type = name
		case HeaderID:
			ev.ID = string(v)
		case HeaderSource:
			ev.Source = string(v)
		case HeaderTraceparent:
			ev.Traceparent = string(v)
		case HeaderContentType:
			contentType = true
			json = bytes.HasPrefix(v, []byte(ContentJSON))
		case HeaderSrc:
			src, err := ParseSrc(v)
			if err != nil {
				return err
			}
			ev.Src = src
		}
	}
	if ev.Type == "" {
		return ErrNoType
	}
	if !contentType {
		json = len(rec.Value) > 0 && rec.Value[0] == '{'
	}
	m := prototypes[ev.Type].ProtoReflect().New().Interface()
	var err error
	if json {
		err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(rec.Value, m)
	} else {
		err = proto.Unmarshal(rec.Value, m)
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %v", ErrData, ev.Type, err)
	}
	ev.Data = m
	return nil
}

// Encode makes the record of an event: topic, key, CloudEvents headers, protobuf value (null when Data is nil).
func Encode(topic, key, source string, ev *Event) (Record, error) {
	rec := Record{Topic: topic, Partition: -1, Key: []byte(key)}
	if ev.Data != nil {
		v, err := proto.MarshalOptions{Deterministic: true}.Marshal(ev.Data)
		if err != nil {
			return rec, fmt.Errorf("encode %s of %s: %w", ev.Type, key, err)
		}
		if v == nil {
			v = []byte{}
		}
		rec.Value = v
	}
	rec.Headers = []Header{
		{HeaderSpecVersion, []byte("1.0")},
		{HeaderID, []byte(ev.ID)},
		{HeaderSource, []byte(source)},
		{HeaderType, []byte("quiesce." + ev.Type + ".v1")},
		{HeaderSubject, BatchOf(rec.Key)},
		{HeaderContentType, []byte(ContentProtobuf)},
	}
	if ev.Traceparent != "" {
		rec.Headers = append(rec.Headers, Header{HeaderTraceparent, []byte(ev.Traceparent)})
	}
	if ev.Src.Group != "" {
		rec.Headers = append(rec.Headers, Header{HeaderSrc, []byte(ev.Src.String())})
	}
	return rec, nil
}

// JSON prints data as wire.md says: snake_case names, 64-bit numbers as strings, enums by name.
func JSON(m proto.Message) ([]byte, error) {
	return protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
}
