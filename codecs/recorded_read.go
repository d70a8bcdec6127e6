package codecs

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// RecordReader reads a recording, line by line.
type RecordReader struct {
	r    *bufio.Reader
	head RecordedTopic
	line int
	next []int64 // by partition: the lowest offset that may follow
}

// NewRecordReader reads the first line.
func NewRecordReader(r io.Reader) (*RecordReader, error) {
	rr := &RecordReader{r: bufio.NewReaderSize(r, 64<<10)}
	b, err := rr.read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("recording: empty file")
	}
	if err != nil {
		return nil, err
	}
	var h recordedHead
	if err := strictJSON(b, &h); err != nil || h.Version == 0 {
		return nil, rr.fault("not a recording: the first line is not {\"quiesce_record\":1,...}")
	}
	if h.Version != recordedVersion {
		return nil, rr.fault("recording of version %d, this release reads %d", h.Version, recordedVersion)
	}
	if h.Partitions < 1 || h.Partitions > maxPartitions {
		return nil, rr.fault("%d partitions", h.Partitions)
	}
	if !isTopic(h.Topic) {
		return nil, rr.fault("topic %q: not a Kafka topic name", clip([]byte(h.Topic)))
	}
	id, err := ParseTopicID(h.TopicID)
	if err != nil {
		return nil, rr.fault("%v", err)
	}
	rr.head = RecordedTopic{Topic: h.Topic, ID: id, Partitions: h.Partitions}
	rr.next = make([]int64, h.Partitions)
	return rr, nil
}

// maxPartitions bounds what a first line can make a reader allocate.
const maxPartitions = 100_000

// Topic is what the first line says.
func (rr *RecordReader) Topic() RecordedTopic { return rr.head }

// Line is the number of the line read last, from 1.
func (rr *RecordReader) Line() int { return rr.line }

// Next reads the next record; io.EOF at the end. An error names the line. The record is its caller's.
func (rr *RecordReader) Next() (*Record, error) {
	b, err := rr.read()
	if err != nil {
		return nil, err
	}
	var l recordedLine
	if err := strictJSON(b, &l); err != nil {
		return nil, rr.fault("%v", err)
	}
	rec := &Record{Topic: rr.head.Topic, Partition: l.Partition, Offset: int64(l.Offset), Time: int64(l.Time), Key: l.Key, Value: l.Value}
	if l.Partition < 0 || l.Partition >= rr.head.Partitions {
		return nil, rr.fault("partition %d of %d", l.Partition, rr.head.Partitions)
	}
	if rec.Offset < rr.next[l.Partition] {
		return nil, rr.fault("partition %d: offset %d, expected %d or more", l.Partition, rec.Offset, rr.next[l.Partition])
	}
	rr.next[l.Partition] = rec.Offset + 1
	for i, h := range l.Headers {
		if h[0] == nil {
			return nil, rr.fault("header %d without a name", i)
		}
		var v []byte
		if h[1] != nil {
			if v, err = base64.StdEncoding.DecodeString(*h[1]); err != nil {
				return nil, rr.fault("header %q: %v", clip([]byte(*h[0])), err)
			}
		}
		rec.Headers = append(rec.Headers, Header{*h[0], v})
	}
	return rec, nil
}

// read returns the next line that is not empty.
func (rr *RecordReader) read() ([]byte, error) {
	for {
		rr.line++
		var line []byte
		for {
			part, err := rr.r.ReadSlice('\n')
			if len(line)+len(part) > MaxRecordedLine {
				return nil, rr.fault("longer than %d bytes", MaxRecordedLine)
			}
			line = append(line, part...)
			if err == nil {
				break
			}
			if errors.Is(err, io.EOF) && len(line) > 0 {
				break
			}
			if errors.Is(err, io.EOF) {
				return nil, io.EOF
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				return nil, fmt.Errorf("recording: line %d: %w", rr.line, err)
			}
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

func (rr *RecordReader) fault(format string, args ...any) error {
	return fmt.Errorf("recording: line %d: %s", rr.line, fmt.Sprintf(format, args...))
}

// strictJSON decodes one JSON object and nothing else. Fields that are not known are ignored.
func strictJSON(b []byte, v any) error {
	if len(b) == 0 || b[0] != '{' {
		return errors.New("not a JSON object")
	}
	return json.Unmarshal(b, v)
}
