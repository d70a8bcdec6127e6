package processors

import (
	"maps"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quiesce/quiesce/codecs"
)

func drawOutput(t *rapid.T) *output {
	o := &output{source: rapid.Int64Range(0, math.MaxInt64).Draw(t, "source"), index: rapid.Int32Range(0, math.MaxInt32).Draw(t, "index"),
		topic: rapid.StringN(0, 8, 8).Draw(t, "topic"), toPart: -1, key: rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "key")}
	for range rapid.IntRange(0, 3).Draw(t, "headers") {
		o.headers = append(o.headers, codecs.Header{Key: rapid.StringN(0, 8, 8).Draw(t, "name"), Value: rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "value")})
	}
	if rapid.Bool().Draw(t, "not null") {
		o.value = rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "value")
		if o.value == nil {
			o.value = []byte{}
		}
	}
	return o
}

func TestEnvelopeReadsWhatItWrote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Envelope{Claim: rapid.Uint64().Draw(t, "claim"), Applied: rapid.Int64Range(-1, math.MaxInt64).Draw(t, "applied"),
			Part: rapid.Bool().Draw(t, "part"), Epoch: rapid.Uint64Range(0, 3).Draw(t, "epoch")}
		for range rapid.IntRange(0, 3).Draw(t, "spans") {
			e.Spans = append(e.Spans, Span{rapid.Int64Range(0, 99).Draw(t, "from"), rapid.Int64Range(0, 99).Draw(t, "to"), rapid.String().Draw(t, "reason")})
		}
		for range rapid.IntRange(0, 3).Draw(t, "outbox") {
			e.outbox = append(e.outbox, drawOutput(t))
		}
		row := rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "row")
		v := codecs.AppendRow(nil, codecs.RowHeader{Format: codecs.RowFormat, Claim: e.Claim, Applied: e.Applied}, row, e.appendTail(nil))
		got, b, err := ParseEnvelope(v)
		require.NoError(t, err)
		require.Equal(t, row, b)
		require.Equal(t, e, got)

		claim := rapid.Uint64().Draw(t, "new claim")
		again, b, err := ParseEnvelope(restamp(v, claim))
		require.NoError(t, err)
		e.Claim = claim
		require.Equal(t, row, b)
		require.Equal(t, e, again)
	})
}

func TestPositionReadsWhatItWrote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := position{Position: codecs.Position{Topic: codecs.TopicID{1, 2}, Offset: rapid.Int64Range(0, math.MaxInt64).Draw(t, "offset")},
			epoch: rapid.Uint64().Draw(t, "epoch"), marks: marks{}}
		for range rapid.IntRange(0, 4).Draw(t, "marks") {
			p.marks[origin{rapid.String().Draw(t, "group"), codecs.TopicID{rapid.Byte().Draw(t, "topic")}, rapid.Int32Range(0, 99).Draw(t, "partition")}] =
				mark{rapid.Int64Range(0, math.MaxInt64).Draw(t, "mark"), rapid.Int32Range(0, 9).Draw(t, "index")}
		}
		v := p.encode(7)
		got, err := parsePosition(v)
		require.NoError(t, err)
		require.Equal(t, p, got)
		require.Equal(t, v, got.encode(7), "the bytes do not depend on map order")
		_, row, _, err := codecs.ParseRow(v)
		require.NoError(t, err)
		plain, err := codecs.ParsePosition(row)
		require.NoError(t, err)
		require.Equal(t, p.Position, plain, "readers of the vocabulary see the same")
	})
}

// TestMarksDropExactlyTheRepeats: outputs leave in order, a restart repeats a tail from any point on.
func TestMarksDropExactlyTheRepeats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "outputs")
		outputs := make([]codecs.Src, n)
		for i := range outputs {
			outputs[i] = codecs.Src{Group: "g", Offset: int64(i / 3), Index: int32(i % 3)}
		}
		m, got, sent := marks{}, []codecs.Src{}, 0
		for sent < n {
			from := rapid.IntRange(0, sent).Draw(t, "from")
			to := rapid.IntRange(sent, n).Draw(t, "to")
			for _, s := range outputs[from:to] {
				if !m.repeat(&s) {
					got = append(got, s)
				}
			}
			sent = to
			if rapid.Bool().Draw(t, "recovered") {
				m = maps.Clone(m)
			}
		}
		require.Equal(t, outputs, got)
	})
}

func FuzzParseEnvelope(f *testing.F) {
	e := Envelope{Part: true, Epoch: 1, Spans: []Span{{1, 2, "x"}}, outbox: []*output{{source: 1, topic: "t", key: []byte("k"), headers: []codecs.Header{{Key: "a", Value: []byte("b")}}, value: []byte("v")}}}
	f.Add(codecs.AppendRow(nil, codecs.RowHeader{Format: 1}, []byte("row"), e.appendTail(nil)))
	f.Add([]byte("Q"))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, row, err := ParseEnvelope(b)
		if err != nil {
			return
		}
		h := codecs.RowHeader{Format: codecs.RowFormat, Claim: e.Claim, Applied: e.Applied}
		again, row2, err := ParseEnvelope(codecs.AppendRow(nil, h, row, e.appendTail(nil)))
		require.NoError(t, err)
		require.Equal(t, string(row), string(row2))
		require.Equal(t, e.Applied, again.Applied)
		require.Len(t, again.outbox, len(e.outbox))
	})
}

func FuzzParsePosition(f *testing.F) {
	p := position{marks: marks{origin{group: "g"}: {1, 2}}}
	f.Add(p.encode(1))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parsePosition(b)
		if err != nil {
			return
		}
		again, err := parsePosition(p.encode(1))
		require.NoError(t, err)
		require.Equal(t, p.Position, again.Position)
		require.Len(t, again.marks, len(p.marks))
	})
}
