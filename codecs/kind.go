package codecs

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Errors of Decode. Each ends the record in the dead letter with its text.
var (
	ErrNoKey       = errors.New("record without key")
	ErrNoType      = errors.New("record without ce_type")
	ErrUnknownType = errors.New("unknown event type")
	ErrVersion     = errors.New("event version is newer than this release")
	ErrContent     = errors.New("unknown content type")
	ErrData        = errors.New("event data does not decode")
)

// kind is what the codec knows of an event type.
type kind struct {
	name     string
	wire     []byte // ce_type
	message  protoreflect.MessageType
	nullable bool // lives in a compacted topic: null means deleted
	bare     bool // carries no data: null means empty
}

func (k *kind) new() proto.Message { return k.message.New().Interface() }

var (
	kindsByName = map[string]*kind{}
	kindsByWire = map[string]*kind{}

	reportKind *kind
	reportWire = []byte("quiesce." + TypeBatchReport + ".v1")
)

func init() {
	for name, m := range prototypes {
		k := &kind{name: name, wire: []byte("quiesce." + name + ".v1"), message: m.ProtoReflect().Type()}
		k.bare = k.message.Descriptor().Fields().Len() == 0
		switch name {
		case TypeBatchStatus, TypeTaskOutcome, TypeManifestChunk:
			k.nullable = true
		}
		kindsByName[name], kindsByWire[string(k.wire)] = k, k
	}
	reportKind = kindsByName[TypeBatchReport]
}

// kindOf finds the kind of a ce_type.
func kindOf(ceType []byte) (*kind, error) {
	if bytes.Equal(ceType, reportWire) {
		return reportKind, nil
	}
	if k, ok := kindsByWire[string(ceType)]; ok {
		return k, nil
	}
	rest, ok := strings.CutPrefix(string(ceType), "quiesce.")
	if i := strings.LastIndex(rest, ".v"); ok && i >= 0 {
		if _, known := kindsByName[rest[:i]]; known && newer(rest[i+2:]) {
			return nil, fmt.Errorf("%w: %q", ErrVersion, clip(ceType))
		}
	}
	return nil, fmt.Errorf("%w: %q", ErrUnknownType, clip(ceType))
}

// newer says whether s is a version number above 1.
func newer(s string) bool {
	if s == "" || s[0] == '0' || s == "1" {
		return false
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// clip bounds foreign bytes that are quoted in an error.
func clip(b []byte) []byte { return b[:min(len(b), 200)] }

// TypeName returns the event name in a ce_type, or an error that wraps ErrUnknownType or ErrVersion.
func TypeName(ceType string) (string, error) {
	k, err := kindOf([]byte(ceType))
	if err != nil {
		return "", err
	}
	return k.name, nil
}

// NewData returns the empty data message of an event name. An error wraps ErrUnknownType.
func NewData(name string) (proto.Message, error) {
	k, ok := kindsByName[name]
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrUnknownType, clip([]byte(name)))
	}
	return k.new(), nil
}

// TypeNames returns all known event names, sorted.
func TypeNames() []string { return slices.Sorted(maps.Keys(kindsByName)) }
