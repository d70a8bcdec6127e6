package codecs

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

func reportRecord(t testing.TB, m *BatchReport) Record {
	rec, err := Encode("quiesce.control", "nightly-2026-11-30", "/quiesce/quiesce/stage-parse", &Event{
		Type: TypeBatchReport, ID: "worker-17/000123", Data: m,
	})
	require.NoError(t, err)
	return rec
}

func TestDecodeEncodeRoundTrip(t *testing.T) {
	for _, json := range []bool{false, true} {
		for _, ev := range samples() {
			e := Encoder{Source: "/quiesce/q/test", JSON: json}
			rec, err := e.Encode("q.control", "b-7", &ev)
			require.NoError(t, err)
			var got Event
			require.NoError(t, Decode(&rec, &got), ev.Type)
			require.True(t, proto.Equal(ev.Data, got.Data), "%s: %v / %v", ev.Type, ev.Data, got.Data)
			require.Equal(t, "b-7", got.Key)
			require.Equal(t, "b-7", got.Subject)
			require.Equal(t, ev.ID, got.ID)
			require.Equal(t, "/quiesce/q/test", got.Source)
			require.Equal(t, ev.Src, got.Src)
			again, err := e.Encode("q.control", "b-7", &got)
			require.NoError(t, err)
			require.Equal(t, rec, again, ev.Type)
		}
	}
}

func TestDecodeIntoTheSameEventKeepsNothing(t *testing.T) {
	full, err := Encode("t", "b", "/s", &Event{
		Type: TypeBatchReport, ID: "1", Subject: "other", Traceparent: goodTrace, Src: Src{Group: "g", Offset: 4},
		Data: &BatchReport{Run: "r", Reporter: "w", Items: []*ReportItem{NewItem(1, 5, OK)}},
	})
	require.NoError(t, err)
	bare := Record{Key: []byte("b"), Headers: []Header{{HeaderType, []byte("quiesce.batch.report.v1")}}, Value: []byte{}}
	var ev Event
	require.NoError(t, Decode(&full, &ev))
	first := ev.Data.(*BatchReport)
	require.NoError(t, Decode(&bare, &ev))
	require.Equal(t, Event{Type: TypeBatchReport, Key: "b", Subject: "b", Data: ev.Data}, ev)
	require.True(t, proto.Equal(&BatchReport{}, ev.Data))
	require.Equal(t, "r", first.Run, "the message of the first decode is its owner's")
	require.EqualValues(t, 5, first.Items[0].GetLast())
}

func TestDecodeErrors(t *testing.T) {
	typ := func(s string) []Header { return []Header{{HeaderType, []byte(s)}} }
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		rec  Record
		want error
	}{
		"no key":            {Record{Headers: typ("quiesce.batch.nudge.v1")}, ErrNoKey},
		"key of zero byte":  {Record{Key: []byte("\x00x"), Headers: typ("quiesce.batch.nudge.v1")}, ErrNoKey},
		"no type":           {Record{Key: []byte("b")}, ErrNoType},
		"unknown type":      {Record{Key: []byte("b"), Headers: typ("quiesce.batch.fly.v1")}, ErrUnknownType},
		"foreign type":      {Record{Key: []byte("b"), Headers: typ("com.example.order.v1")}, ErrUnknownType},
		"unknown, newer":    {Record{Key: []byte("b"), Headers: typ("quiesce.batch.fly.v2")}, ErrUnknownType},
		"no version":        {Record{Key: []byte("b"), Headers: typ("quiesce.batch.start")}, ErrUnknownType},
		"version zero":      {Record{Key: []byte("b"), Headers: typ("quiesce.batch.start.v0")}, ErrUnknownType},
		"version no number": {Record{Key: []byte("b"), Headers: typ("quiesce.batch.start.v1b")}, ErrUnknownType},
		"version 2":         {Record{Key: []byte("b"), Headers: typ("quiesce.batch.start.v2")}, ErrVersion},
		"version 10":        {Record{Key: []byte("b"), Headers: typ("quiesce.batch.start.v10")}, ErrVersion},
		"specversion 2": {Record{Key: []byte("b"), Headers: append(typ("quiesce.batch.nudge.v1"),
			Header{HeaderSpecVersion, []byte("2.0")})}, ErrVersion},
		"content type": {Record{Key: []byte("b"), Headers: append(typ("quiesce.batch.nudge.v1"),
			Header{HeaderContentType, []byte("text/plain")})}, ErrContent},
		"structured": {Record{Key: []byte("b"), Headers: append(typ("quiesce.batch.nudge.v1"),
			Header{HeaderContentType, []byte("application/cloudevents+json")})}, ErrContent},
		"null":        {Record{Key: []byte("b"), Headers: typ("quiesce.batch.report.v1")}, ErrData},
		"garbage":     {Record{Key: []byte("b"), Headers: typ("quiesce.batch.report.v1"), Value: []byte("\xff\xff")}, ErrData},
		"bad UTF-8":   {Record{Key: []byte("b"), Headers: typ("quiesce.batch.report.v1"), Value: []byte("\x0a\x01\xff")}, ErrData},
		"broken JSON": {Record{Key: []byte("b"), Headers: typ("quiesce.batch.report.v1"), Value: []byte(`{"run":`)}, ErrData},
		"JSON array": {Record{Key: []byte("b"), Headers: append(typ("quiesce.batch.report.v1"),
			Header{HeaderContentType, []byte(ContentJSON)}), Value: []byte(`[1]`)}, ErrData},
		"src":       {Record{Key: []byte("b"), Headers: append(typ("quiesce.batch.nudge.v1"), Header{HeaderSrc, []byte("x/y")})}, ErrData},
		"long type": {Record{Key: []byte("b"), Headers: typ(long)}, ErrUnknownType},
	} {
		t.Run(name, func(t *testing.T) {
			var ev Event
			err := Decode(&c.rec, &ev)
			require.ErrorIs(t, err, c.want)
			require.Less(t, len(err.Error()), 1000, "foreign bytes in an error are bounded")
		})
	}
}

func TestNullValues(t *testing.T) {
	for name, isNil := range map[string]bool{TypeBatchNudge: false, TypeBatchStatus: true, TypeTaskOutcome: true} {
		rec := Record{Key: []byte("b"), Headers: []Header{{HeaderType, []byte("quiesce." + name + ".v1")}}}
		var ev Event
		require.NoError(t, Decode(&rec, &ev))
		require.Equal(t, isNil, ev.Data == nil, name)
	}
	rec, err := Encode("t", "b", "/s", &Event{Type: TypeBatchStatus})
	require.NoError(t, err)
	require.Nil(t, rec.Value)
	rec, err = Encode("t", "b", "/s", &Event{Type: TypeBatchNudge, Data: &BatchNudge{}})
	require.NoError(t, err)
	require.NotNil(t, rec.Value, "an empty message is not a null value")
}

func TestDecodeBehindARowHeader(t *testing.T) {
	rec, err := Encode("t", "b", "/s", &Event{Type: TypeBatchStatus, Data: &BatchStatus{Run: "r", State: State_sealed}})
	require.NoError(t, err)
	bare := rec.Value
	rec.Value = AppendRow(nil, RowHeader{Format: RowFormat, Claim: 3, Applied: 9}, bare, nil)
	var ev Event
	require.NoError(t, Decode(&rec, &ev))
	require.Equal(t, "r", ev.Data.(*BatchStatus).Run)
	rec.Value = AppendRow(nil, RowHeader{Format: RowFormat + 1}, bare, nil)
	require.ErrorIs(t, Decode(&rec, &ev), ErrNewFormat)
	rec.Value = rec.Value[:10]
	require.ErrorIs(t, Decode(&rec, &ev), ErrData)
}

func TestContentType(t *testing.T) {
	pb, err := proto.Marshal(&BatchSeal{Run: "r", Total: 3})
	require.NoError(t, err)
	js := []byte(`{"run":"r","total":3}`)
	for _, c := range []struct {
		contentType string
		value       []byte
	}{
		{"", pb}, {"", js}, {"", []byte("\n\t " + string(js) + "\n")},
		{"application/protobuf", pb}, {"application/x-protobuf", pb}, {"Application/Protobuf; proto=x", pb},
		{"application/json", js}, {"APPLICATION/JSON; charset=utf-8", js}, {"application/json", []byte(" " + string(js))},
	} {
		rec := Record{Key: []byte("b"), Headers: []Header{{HeaderType, []byte("quiesce.batch.seal.v1")}}, Value: c.value}
		if c.contentType != "" {
			rec.Headers = append(rec.Headers, Header{HeaderContentType, []byte(c.contentType)})
		}
		var ev Event
		require.NoError(t, Decode(&rec, &ev), "%q %q", c.contentType, c.value)
		require.EqualValues(t, 3, ev.Data.(*BatchSeal).Total)
	}
}

// A protobuf value whose first byte is a line feed (field 1, a string) and whose second is '{' (its length) is not JSON.
func TestSniffingKeepsProtobufThatLooksLikeJSON(t *testing.T) {
	in := &BatchSeal{Run: strings.Repeat("r", '{'), Total: 1}
	v, err := proto.Marshal(in)
	require.NoError(t, err)
	require.Equal(t, "\n{", string(v[:2]))
	rec := Record{Key: []byte("b"), Headers: []Header{{HeaderType, []byte("quiesce.batch.seal.v1")}}, Value: v}
	var ev Event
	require.NoError(t, Decode(&rec, &ev))
	require.True(t, proto.Equal(in, ev.Data))
}

func TestUnknownFieldsSurvive(t *testing.T) {
	in := &BatchStart{Run: "r", Mode: "ledger"}
	v, err := proto.Marshal(in)
	require.NoError(t, err)
	v = append(v, 0xfa, 0x3f, 3, 'n', 'e', 'w') // field 1023 of a later release
	rec := Record{Key: []byte("b"), Headers: []Header{{HeaderType, []byte("quiesce.batch.start.v1")}}, Value: v}
	var ev Event
	require.NoError(t, Decode(&rec, &ev))
	out, err := Encode("t", "b", "/s", &ev)
	require.NoError(t, err)
	require.Equal(t, v, out.Value)

	report := append(reportRecord(t, &BatchReport{Run: "r", Items: []*ReportItem{NewItem(1, 1, OK)}}).Value, 0xfa, 0x3f, 1, 'x')
	rec.Headers, rec.Value = []Header{{HeaderType, []byte("quiesce.batch.report.v1")}}, report
	require.NoError(t, Decode(&rec, &ev))
	out, err = Encode("t", "b", "/s", &ev)
	require.NoError(t, err)
	require.Equal(t, report, out.Value)
}

func TestJSONForm(t *testing.T) {
	b, err := JSON(&BatchEvent{
		Run: "r", State: State_completed_with_failures, Counts: &Counts{Total: 4294967295, TimedOut: 1},
		StartedAt: 1764547200000, Items: []*ReportItem{{Bitmap: []byte{1, 2, 3}, Outcome: TimedOut}},
	})
	require.NoError(t, err)
	require.Equal(t, `{"run":"r","state":"completed_with_failures","counts":{"total":4294967295,"timed_out":1},`+
		`"started_at":"1764547200000","items":[{"bitmap":"AQID","outcome":"timed_out"}]}`, string(b))
	b, err = FullJSON(&Counts{Total: 1})
	require.NoError(t, err)
	require.Equal(t, `{"total":1,"pending":0,"running":0,"ok":0,"failed":0,"skipped":0,"cancelled":0,"timed_out":0,"lost":0,"unknown":0}`, string(b))
}

func TestJSONReading(t *testing.T) {
	for _, doc := range []string{
		`{"run":"r","deadlines":{"complete_by":"1764547200000"}}`,
		`{"run":"r","deadlines":{"complete_by":1764547200000}}`,
		`{"run":"r","deadlines":{"completeBy":1764547200000}}`,
		`{"run":"r","later":{"a":[1,{"b":2}]},"deadlines":{"complete_by":1764547200000,"more":null}}`,
	} {
		var m BatchStart
		require.NoError(t, UnmarshalJSON([]byte(doc), &m), doc)
		require.EqualValues(t, 1764547200000, m.Deadlines.CompleteBy)
	}
	for doc, pointer := range map[string]string{
		`{"items":[{"first":1,"outcome":"ok"},{"first":2,"outcome":"okay"}]}`: "/items/1/outcome",
		`{"items":[{"first":-1}]}`:                  "/items/0/first",
		`{"items":[{"first":1,"last":4294967296}]}`: "/items/0/last",
		`{"items":[{"bitmap":"%%"}]}`:               "/items/0/bitmap",
		`{"items":[7]}`:                             "/items/0",
		`{"items":{"first":1}}`:                     "/items",
		`{"run":5}`:                                 "/run",
		`{"run":"r"} {"run":"s"}`:                   "",
		`{"new":1,"items":[{"outcome":"faild"}]}`:   "/items/0/outcome",
	} {
		var m BatchReport
		err := UnmarshalJSON([]byte(doc), &m)
		var fields FieldErrors
		require.ErrorAs(t, err, &fields, doc)
		require.Equal(t, pointer, fields[0].Pointer, doc)
	}
	var m BatchStart
	require.Error(t, UnmarshalJSON([]byte(`{"run":"a","run":"b","later":1}`), &m), "a field given twice")
	var fields FieldErrors
	require.ErrorAs(t, UnmarshalStrictJSON([]byte(`{"run":"a","labls":{"a/b":"c"}}`), &m), &fields)
	require.Equal(t, FieldErrors{{"/labls", "unknown field"}}, fields)
	require.NoError(t, UnmarshalStrictJSON([]byte(`{"run":"a","labels":{"a":"c"}}`), &m))
	require.ErrorAs(t, UnmarshalJSON([]byte(`{"labels":{"a/b":7}}`), &m), &fields)
	require.Equal(t, "/labels/a~1b", fields[0].Pointer)
}

func TestJSONIsStable(t *testing.T) {
	m := &BatchStart{Run: "r", Labels: map[string]string{"z": "1", "a": "2", "m": "3"}}
	first, err := JSON(m)
	require.NoError(t, err)
	require.True(t, json.Valid(first))
	for range 100 {
		b, err := JSON(m)
		require.NoError(t, err)
		require.Equal(t, string(first), string(b))
	}
}

const goodTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestTraceparent(t *testing.T) {
	for s, ok := range map[string]bool{
		goodTrace:                      true,
		"cc" + goodTrace[2:]:           true,
		"cc" + goodTrace[2:] + "-more": true,
		"cc" + goodTrace[2:] + "more":  false,
		goodTrace + "-more":            false,
		"ff" + goodTrace[2:]:           false,
		strings.ToUpper(goodTrace):     false,
		goodTrace[:54]:                 false,
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": false,
		"": false,
	} {
		require.Equal(t, ok, ValidTraceparent([]byte(s)), s)
		rec := Record{Key: []byte("b"), Headers: []Header{{HeaderType, []byte("quiesce.batch.nudge.v1")}, {HeaderTraceparent, []byte(s)}}}
		var ev Event
		require.NoError(t, Decode(&rec, &ev))
		if ok {
			require.Equal(t, s, ev.Traceparent)
		} else {
			require.Empty(t, ev.Traceparent)
		}
	}
}
