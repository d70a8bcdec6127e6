package codecs_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
)

func TestDeadLetterKeepsTheRecordAndSaysWhy(t *testing.T) {
	rec := &codecs.Record{Topic: "paths", Partition: 3, Offset: 17, Key: []byte("k"), Value: []byte{0xff, 0},
		Headers: []codecs.Header{{Key: "a", Value: []byte("b")}}}
	id := codecs.TopicID{1, 2}
	d := codecs.NewDeadLetter("quiesce.dead-letter", rec, id, "boom")
	require.Equal(t, rec.Key, d.Key)
	require.Equal(t, rec.Value, d.Value)
	require.Equal(t, rec.Headers[0], d.Headers[0])
	about, err := codecs.ParseDeadLetter(&d)
	require.NoError(t, err)
	require.Equal(t, "boom paths 3 17", fmt.Sprint(about.Reason, " ", about.Topic, " ", about.Partition, " ", about.Offset))
	require.EqualValues(t, 17, about.Offset)
	require.Equal(t, id[:], about.TopicId)
}

func TestDeadLetterNamesWhatIsTooLarge(t *testing.T) {
	rec := &codecs.Record{Topic: "paths", Value: bytes.Repeat([]byte{1}, codecs.MaxDeadLetter+1)}
	d := codecs.NewDeadLetter("quiesce.dead-letter", rec, codecs.TopicID{}, "boom")
	require.Nil(t, d.Value)
	sum, ok := d.Header(codecs.HeaderDeadSHA256)
	require.True(t, ok)
	require.Len(t, sum, 64)
}

func TestDeadLetterFitsItsTopic(t *testing.T) {
	rec := &codecs.Record{Topic: "paths", Key: bytes.Repeat([]byte{1}, 5000), Value: bytes.Repeat([]byte{2}, 3000),
		Headers: []codecs.Header{{Key: "a", Value: bytes.Repeat([]byte{3}, 2000)}}}
	for _, limit := range []int{11_000, 8000, 1000} {
		d := codecs.NewDeadLetterWithin(limit, "quiesce.dead-letter", rec, codecs.TopicID{}, "boom")
		require.LessOrEqual(t, d.Size(), limit)
		require.Equal(t, limit == 11_000, d.Value != nil)
		require.Equal(t, limit > 1000, d.Key != nil)
		_, original := d.Header("a")
		require.Equal(t, limit > 1000, original)
		about, err := codecs.ParseDeadLetter(&d)
		require.NoError(t, err)
		require.Equal(t, "boom", about.Reason)
	}
}

// What went in comes out, whatever was added.
func TestUndeadIsTheRecord(t *testing.T) {
	rec := &codecs.Record{Topic: "paths", Partition: 3, Offset: 17, Key: []byte("k"), Value: []byte{0xff, 0},
		Headers: []codecs.Header{{Key: "a", Value: []byte("b")}, {Key: "a", Value: nil}}}
	d := codecs.NewDeadLetter("quiesce.dead-letter", rec, codecs.TopicID{1}, "boom")
	d.Headers = append(d.Headers, codecs.Header{Key: codecs.HeaderDeadParked, Value: []byte("1")})
	back, err := codecs.Undead(&d)
	require.NoError(t, err)
	require.Equal(t, *rec, back)
	rec.Value = bytes.Repeat([]byte{1}, codecs.MaxDeadLetter+1)
	d = codecs.NewDeadLetter("quiesce.dead-letter", rec, codecs.TopicID{1}, "boom")
	_, err = codecs.Undead(&d)
	require.ErrorIs(t, err, codecs.ErrNotWhole)
	_, err = codecs.Undead(rec)
	require.ErrorIs(t, err, codecs.ErrData)
}
