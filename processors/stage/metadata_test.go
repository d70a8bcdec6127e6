package stage

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

func TestMetadataReadsWhatItWrites(t *testing.T) {
	d := &Desk{}
	id := codecs.TopicID{1, 2, 3}
	st := &codecs.UnitState{Position: 17, TopicId: id[:], Plans: []string{"p"},
		Batches: []*codecs.UnitBatch{{Batch: "b", Run: "r", Round: 1, Seen: []byte{5}, Consumed: 9, Produced: map[string]uint64{"t": 3}}}}
	text, err := d.metadata(context.Background(), &codecs.Unit{Stage: "s", Topic: "t"}, st)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(text, "q1 01020300000000000000000000000000 "), text)
	m, err := parseMetadata(text)
	require.NoError(t, err)
	require.Equal(t, id, m.topicID)
	require.True(t, proto.Equal(st, m.state))

	m, err = parseMetadata("q1 01020300000000000000000000000000 @3:99")
	require.NoError(t, err)
	require.Equal(t, pointer{3, 99}, m.at)
	require.Nil(t, m.state)
}

func TestMetadataOfOthersIsNotOurs(t *testing.T) {
	for _, text := range []string{"", "x", "q1 ", "q1 zz @1:2", "q1 01020300000000000000000000000000", "q2 01020300000000000000000000000000 ",
		"q1 01020300000000000000000000000000 @1", "q1 01020300000000000000000000000000 @-1:2", "q1 01020300000000000000000000000000 @1:-2",
		"q1 01020300000000000000000000000000 !!!", "q1 01020300000000000000000000000000 /////w"} {
		_, err := parseMetadata(text)
		require.ErrorIs(t, err, errMetadata, text)
	}
}

func FuzzParseMetadata(f *testing.F) {
	f.Add("q1 01020300000000000000000000000000 CBE")
	f.Add("q1 01020300000000000000000000000000 @3:99")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseMetadata(text)
		if err != nil && !errors.Is(err, errMetadata) {
			t.Fatalf("%q: %v", text, err)
		}
		if err == nil && m.state == nil && (m.at.partition < 0 || m.at.offset < 0) {
			t.Fatalf("%q: pointer %v", text, m.at)
		}
	})
}

func TestReasonsFitAReport(t *testing.T) {
	require.Equal(t, "one line", clip("one\nline"))
	require.Equal(t, "b?d", clip("b\xffd"))
	long := clip(strings.Repeat("ä", 2000))
	require.LessOrEqual(t, len(long), maxReason)
	require.True(t, strings.HasSuffix(long, "..."))
	require.NotContains(t, long, "\ufffd")
}
