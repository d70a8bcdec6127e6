package codecs

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

// FuzzDecode: any record is either an event, which encodes and decodes to itself in both encodings, or one of the errors
// that the dead letter explains. Nothing panics, in validation neither.
func FuzzDecode(f *testing.F) {
	for _, ev := range samples() {
		for _, json := range []bool{false, true} {
			rec, err := (&Encoder{Source: "/s", JSON: json}).Encode("t", "b", &ev)
			require.NoError(f, err)
			f.Add("b", "quiesce."+ev.Type+".v1", "", "", "", rec.Value)
		}
	}
	f.Add("b\x00r", "quiesce.batch.report.v2", "application/json", goodTrace, "g/00000000000000000000000000000000/0/0/1", []byte(`{"run":`))
	f.Add("b", "quiesce.batch.report.v1", "", "", "", []byte(`{"new":[{}],"items":[{"first":1,"outcome":"ok","x":null}]}`))
	f.Fuzz(func(t *testing.T, key, typ, content, trace, src string, value []byte) {
		rec := Record{Key: []byte(key), Value: value, Headers: []Header{{HeaderType, []byte(typ)}}}
		for name, v := range map[string]string{HeaderContentType: content, HeaderTraceparent: trace, HeaderSrc: src} {
			if v != "" {
				rec.Headers = append(rec.Headers, Header{name, []byte(v)})
			}
		}
		var ev Event
		if err := Decode(&rec, &ev); err != nil {
			for _, known := range []error{ErrNoKey, ErrNoType, ErrUnknownType, ErrVersion, ErrContent, ErrData} {
				if errors.Is(err, known) {
					return
				}
			}
			t.Fatalf("%v: none of the errors of Decode", err)
		}
		_ = Validate(&ev)
		line := ev.String()
		for _, json := range []bool{false, true} {
			again, err := (&Encoder{JSON: json}).Encode("t", key, &ev)
			require.NoError(t, err)
			var ev2 Event
			require.NoError(t, Decode(&again, &ev2))
			require.Equal(t, line, ev2.String())
			require.True(t, json || ev.Data == nil || proto.Equal(ev.Data, ev2.Data), "unknown fields survive in protobuf")
		}
	})
}
