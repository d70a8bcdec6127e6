package codecs

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRecordedTopicRoundTrip(t *testing.T) {
	topic := RecordedTopic{Topic: "quiesce.control", ID: TopicID{1, 2, 3}, Partitions: 3}
	records := []*Record{
		{Topic: topic.Topic, Partition: 2, Offset: 5, Time: 1764547200000, Key: []byte("b-7"), Value: []byte("v"),
			Headers: []Header{{"ce_type", []byte("x")}, {"null", nil}, {"", []byte{}}, {"ce_type", []byte{0, 0xff}}}},
		{Topic: topic.Topic, Partition: 0, Offset: 1 << 60, Time: -1, Key: nil, Value: nil},
		{Topic: topic.Topic, Partition: 2, Offset: 9, Key: []byte{}, Value: []byte{}},
	}
	var file bytes.Buffer
	w, err := NewRecordWriter(&file, topic)
	require.NoError(t, err)
	for _, r := range records {
		require.NoError(t, w.Write(r))
	}
	require.NoError(t, w.Flush())
	lines := strings.Split(file.String(), "\n")
	require.Equal(t, `{"quiesce_record":1,"topic":"quiesce.control","topic_id":"01020300000000000000000000000000","partitions":3}`, lines[0])
	require.Equal(t, `{"p":2,"o":"5","t":"1764547200000","k":"Yi03","h":[["ce_type","eA=="],["null",null],["",""],["ce_type","AP8="]],"v":"dg=="}`, lines[1])
	require.Equal(t, `{"p":0,"o":"1152921504606846976","t":"-1","k":null,"h":[],"v":null}`, lines[2])

	r, err := NewRecordReader(&file)
	require.NoError(t, err)
	require.Equal(t, topic, r.Topic())
	for _, want := range records {
		got, err := r.Next()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err = r.Next()
	require.Equal(t, io.EOF, err)
}

func TestRecordedTopicReadsNumbersAndLaterFields(t *testing.T) {
	r, err := NewRecordReader(strings.NewReader(`{"quiesce_record":1,"topic":"t","topic_id":"00000000000000000000000000000001","partitions":1,"by":"x"}

{"p":0,"o":7,"t":12,"k":"YQ==","v":null,"later":{}}`))
	require.NoError(t, err)
	rec, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, &Record{Topic: "t", Offset: 7, Time: 12, Key: []byte("a")}, rec)
	require.Equal(t, 3, r.Line())
}

func TestRecordedTopicFaultsNameTheLine(t *testing.T) {
	const head = `{"quiesce_record":1,"topic":"t","topic_id":"00000000000000000000000000000001","partitions":2}` + "\n"
	for text, want := range map[string]string{
		"":                                 "recording: empty file",
		"hello":                            "recording: line 1: not a recording",
		`{"p":0}`:                          "recording: line 1: not a recording",
		`{"quiesce_record":2,"topic":"t"}`: "recording: line 1: recording of version 2",
		`{"quiesce_record":1,"topic":"t","topic_id":"0","partitions":2}`:                                  "recording: line 1: topic id",
		`{"quiesce_record":1,"topic":"a b","topic_id":"0","partitions":2}`:                                "recording: line 1: topic \"a b\"",
		`{"quiesce_record":1,"topic":"t","topic_id":"00000000000000000000000000000001","partitions":0}`:   "recording: line 1: 0 partitions",
		`{"quiesce_record":1,"topic":"t","topic_id":"00000000000000000000000000000001","partitions":2e9}`: "recording: line 1: not a recording",
		head + "\n[1]":                                  "recording: line 3: not a JSON object",
		head + `{"p":2,"o":0}`:                          "recording: line 2: partition 2 of 2",
		head + `{"p":0,"o":"x"}`:                        "recording: line 2: ",
		head + `{"p":0,"o":-1}`:                         "recording: line 2: partition 0: offset -1",
		head + `{"p":0,"o":1}` + "\n" + `{"p":0,"o":1}`: "recording: line 3: partition 0: offset 1, expected 2",
		head + `{"p":0,"o":1,"k":"%"}`:                  "recording: line 2: ",
		head + `{"p":0,"o":1,"h":[["a","%"]]}`:          "recording: line 2: header \"a\"",
		head + `{"p":0,"o":1,"h":[[null,"aa=="]]}`:      "recording: line 2: header 0 without a name",
		head + strings.Repeat(" ", MaxRecordedLine+1):   "recording: line 2: longer than",
	} {
		err := drain(text)
		require.Error(t, err, text[:min(100, len(text))])
		require.Contains(t, err.Error(), want)
	}
}

func drain(text string) error {
	r, err := NewRecordReader(strings.NewReader(text))
	for err == nil {
		_, err = r.Next()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// FuzzRecordedTopic: whatever is read is written again and read the same.
func FuzzRecordedTopic(f *testing.F) {
	f.Add(`{"quiesce_record":1,"topic":"t","topic_id":"00000000000000000000000000000001","partitions":2}` + "\n" +
		`{"p":1,"o":"3","t":"4","k":"YQ==","h":[["a",null],["b","YQ=="]],"v":"Yg=="}`)
	f.Add(`{"quiesce_record":1,"topic":"t","topic_id":"00000000000000000000000000000001","partitions":1}` + "\n" + `{"p":0,"o":0}` + "\n\n" + `{"p":0,"o":5}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := NewRecordReader(strings.NewReader(text))
		if err != nil {
			return
		}
		var file bytes.Buffer
		w, err := NewRecordWriter(&file, r.Topic())
		require.NoError(t, err)
		var read []*Record
		for {
			rec, err := r.Next()
			if err != nil {
				break
			}
			read = append(read, rec)
			require.NoError(t, w.Write(rec))
		}
		require.NoError(t, w.Flush())
		again, err := NewRecordReader(&file)
		require.NoError(t, err)
		for _, want := range read {
			got, err := again.Next()
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	})
}
