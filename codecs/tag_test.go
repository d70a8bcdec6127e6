package codecs

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func headersOf(kv ...string) (hs []Header) {
	for i := 0; i < len(kv); i += 2 {
		hs = append(hs, Header{kv[i], []byte(kv[i+1])})
	}
	return hs
}

func TestTagRoundTrip(t *testing.T) {
	for _, want := range []Tag{
		{Batch: "b", Run: "r", Index: 0, Round: 1},
		{Batch: "b", Run: "r", Index: 4294967295, Round: 3, Trace: goodTrace},
		{Batch: "b", Run: "r", Round: 1, Control: ControlEnd, From: &Unit{Stage: "parse", Topic: "paths", Partition: 3}},
	} {
		hs := AppendTag(headersOf("other", "x"), &want)
		require.Equal(t, "other", hs[0].Key)
		got, ok, err := ParseTag(hs)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, want, got)
		require.Equal(t, want.Control != "", got.IsControl())
		for _, h := range hs[1:] {
			require.True(t, IsTag(h.Key) || h.Key == HeaderTraceparent)
		}
	}
	require.False(t, IsTag("other"))
}

func TestTagForm(t *testing.T) {
	require.Equal(t, headersOf(HeaderBatch, "b", HeaderRun, "r", HeaderIndex, "41", HeaderRound, "2"),
		AppendTag(nil, &Tag{Batch: "b", Run: "r", Index: 41, Round: 2}))
	require.Equal(t, headersOf(HeaderBatch, "b", HeaderRun, "r", HeaderIndex, "41"),
		AppendTag(nil, &Tag{Batch: "b", Run: "r", Index: 41, Round: 1}), "round 1 is not written")
	rec := EndMarker("asts", 2, "b", "r", 1, &Unit{Stage: "parse", Topic: "paths", Partition: 3})
	require.Equal(t, Record{Topic: "asts", Partition: 2, Value: []byte{}, Headers: headersOf(
		HeaderBatch, "b", HeaderRun, "r", HeaderControl, "end", HeaderUnit, "parse/paths/3")}, rec)
	require.NotNil(t, rec.Value)
	require.Nil(t, rec.Key)
}

func TestParseTagFaults(t *testing.T) {
	_, ok, err := ParseTag(headersOf("x", "y", HeaderTraceparent, goodTrace))
	require.False(t, ok)
	require.NoError(t, err)
	got, ok, err := ParseTag(headersOf(HeaderControl, "pause"))
	require.NoError(t, err)
	require.True(t, ok && got.IsControl(), "a control record of a later release is skipped")
	for want, hs := range map[string][]Header{
		`quiesce-batch id "a b"`:     headersOf(HeaderBatch, "a b", HeaderRun, "r", HeaderIndex, "1"),
		`quiesce-run id ""`:          headersOf(HeaderBatch, "b", HeaderIndex, "1"),
		`quiesce-index is missing`:   headersOf(HeaderBatch, "b", HeaderRun, "r"),
		`quiesce-index ""`:           headersOf(HeaderBatch, "b", HeaderRun, "r", HeaderIndex, ""),
		`quiesce-index "-1"`:         headersOf(HeaderBatch, "b", HeaderRun, "r", HeaderIndex, "-1"),
		`quiesce-index "4294967296"`: headersOf(HeaderBatch, "b", HeaderRun, "r", HeaderIndex, "4294967296"),
		`quiesce-round "x"`:          headersOf(HeaderBatch, "b", HeaderRun, "r", HeaderIndex, "1", HeaderRound, "x"),
		`quiesce-source ""`:          headersOf(HeaderBatch, "b", HeaderRun, "r", HeaderControl, "end"),
		`quiesce-source "a/b"`:       headersOf(HeaderBatch, "b", HeaderRun, "r", HeaderControl, "end", HeaderUnit, "a/b"),
		`quiesce-source "a/b/x"`:     headersOf(HeaderBatch, "b", HeaderRun, "r", HeaderControl, "end", HeaderUnit, "a/b/x"),
	} {
		_, ok, err := ParseTag(hs)
		require.True(t, ok)
		require.ErrorContains(t, err, want)
	}
}

func FuzzParseTag(f *testing.F) {
	f.Add("b", "r", "41", "2", "", "")
	f.Add("b", "r", "", "", "end", "parse/paths/3")
	f.Add("", "", "", "", "stop", "")
	f.Fuzz(func(t *testing.T, batch, run, index, round, control, unit string) {
		tag, ok, err := ParseTag(headersOf(HeaderBatch, batch, HeaderRun, run, HeaderIndex, index, HeaderRound, round,
			HeaderControl, control, HeaderUnit, unit))
		if err != nil || !ok || tag.Control != "" && tag.Control != ControlEnd {
			return
		}
		again, ok, err := ParseTag(AppendTag(nil, &tag))
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, tag, again)
	})
}

func TestHeaderName(t *testing.T) {
	for _, name := range []string{HeaderSpecVersion, HeaderID, HeaderSource, HeaderType, HeaderSubject, HeaderContentType,
		HeaderTraceparent, HeaderSrc, HeaderMoved, HeaderBatch, HeaderRun, HeaderIndex, HeaderRound, HeaderControl, HeaderUnit} {
		b := []byte(name)
		require.Equal(t, name, HeaderName(b))
		require.Zero(t, testing.AllocsPerRun(10, func() { HeaderName(b) }), name)
	}
	require.Equal(t, "x-other", HeaderName([]byte("x-other")))
}
