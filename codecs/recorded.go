package codecs

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// RecordedTopic describes the topic whose records a recording holds. It is the first line of the file:
//
//	{"quiesce_record":1,"topic":"quiesce.control","topic_id":"<32 hex digits>","partitions":4}
//
// then one line a record, in offset order within a partition; t is in ms, k and v are base64 or null:
//
//	{"p":0,"o":"12","t":"1764547200000","k":"Yi03","h":[["ce_type","cXVpZXNjZS5..."]],"v":"CgFy"}
type RecordedTopic struct {
	Topic      string
	ID         TopicID
	Partitions int32
}

const (
	recordedVersion = 1
	// MaxRecordedLine bounds a line of a recording: the largest record that our topics take, in base64, and its headers.
	MaxRecordedLine = 16 << 20
)

// recordedHead and recordedLine are the JSON forms.
type recordedHead struct {
	Version    int    `json:"quiesce_record"`
	Topic      string `json:"topic"`
	TopicID    string `json:"topic_id"`
	Partitions int32  `json:"partitions"`
}

type recordedLine struct {
	Partition int32        `json:"p"`
	Offset    jsonInt64    `json:"o"`
	Time      jsonInt64    `json:"t"`
	Key       []byte       `json:"k"`
	Headers   [][2]*string `json:"h"`
	Value     []byte       `json:"v"`
}

// jsonInt64 prints as a string and reads strings and numbers.
type jsonInt64 int64

func (n jsonInt64) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatInt(int64(n), 10)), nil
}

func (n *jsonInt64) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(string(bytes.Trim(b, `"`)), 10, 64)
	*n = jsonInt64(v)
	return err
}

// RecordWriter writes a recording.
type RecordWriter struct {
	w    *bufio.Writer
	head RecordedTopic
}

// NewRecordWriter writes the first line. Call Flush at the end.
func NewRecordWriter(w io.Writer, t RecordedTopic) (*RecordWriter, error) {
	rw := &RecordWriter{w: bufio.NewWriterSize(w, 64<<10), head: t}
	return rw, rw.line(recordedHead{recordedVersion, t.Topic, t.ID.String(), t.Partitions})
}

// Write appends one record.
func (rw *RecordWriter) Write(rec *Record) error {
	l := recordedLine{Partition: rec.Partition, Offset: jsonInt64(rec.Offset), Time: jsonInt64(rec.Time), Key: rec.Key,
		Value: rec.Value, Headers: make([][2]*string, 0, len(rec.Headers))}
	for i := range rec.Headers {
		h := &rec.Headers[i]
		pair := [2]*string{&h.Key}
		if h.Value != nil {
			v := base64.StdEncoding.EncodeToString(h.Value)
			pair[1] = &v
		}
		l.Headers = append(l.Headers, pair)
	}
	return rw.line(l)
}

func (rw *RecordWriter) line(v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = rw.w.Write(append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("recording of %s: %w", rw.head.Topic, err)
	}
	return nil
}

// Flush writes what is buffered.
func (rw *RecordWriter) Flush() error { return rw.w.Flush() }
