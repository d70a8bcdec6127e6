package codecs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Headers of a record in the dead-letter topic, beside the original ones. Its key and value are the original bytes.
const (
	HeaderDeadReason    = "quiesce-dead-reason"
	HeaderDeadTopic     = "quiesce-dead-topic"
	HeaderDeadTopicID   = "quiesce-dead-topic-id"
	HeaderDeadPartition = "quiesce-dead-partition"
	HeaderDeadOffset    = "quiesce-dead-offset"
	HeaderDeadSHA256    = "quiesce-dead-sha256" // instead of a value that is too large
	HeaderDeadParked    = "quiesce-dead-parked" // there is nothing wrong with the record: its row was quarantined

	headersDead = "quiesce-dead-"
)

// ErrNotWhole says that a dead letter does not hold its record.
var ErrNotWhole = errors.New("the dead letter does not hold the whole record")

// MaxDeadLetter is the largest dead letter in bytes that holds its record whole. A larger one is named, not copied.
const MaxDeadLetter = 4 << 20

// NewDeadLetter makes the dead letter of a record for a topic: the original key, value and headers, and where it came
// from and why it is there.
func NewDeadLetter(topic string, rec *Record, id TopicID, reason string) Record {
	return NewDeadLetterWithin(MaxDeadLetter, topic, rec, id, reason)
}

// NewDeadLetterWithin is NewDeadLetter for a topic that takes records of at most limit bytes (Record.Size). When the letter
// is larger it has a digest instead of the value, and when that is not enough, no original key and headers either.
func NewDeadLetterWithin(limit int, topic string, rec *Record, id TopicID, reason string) Record {
	d := Record{Topic: topic, Partition: -1, Key: rec.Key, Value: rec.Value}
	d.Headers = append(make([]Header, 0, len(rec.Headers)+6), rec.Headers...)
	add := func(name, v string) { d.Headers = append(d.Headers, Header{name, []byte(v)}) }
	add(HeaderDeadReason, reason)
	add(HeaderDeadTopic, rec.Topic)
	add(HeaderDeadTopicID, id.String())
	add(HeaderDeadPartition, strconv.Itoa(int(rec.Partition)))
	add(HeaderDeadOffset, strconv.FormatInt(rec.Offset, 10))
	if limit = min(limit, MaxDeadLetter); d.Size() <= limit {
		return d
	}
	sum := sha256.Sum256(rec.Value)
	d.Value = nil
	add(HeaderDeadSHA256, hex.EncodeToString(sum[:]))
	if d.Size() > limit {
		d.Key, d.Headers = nil, d.Headers[len(rec.Headers):]
	}
	return d
}

// ParseDeadLetter reads what NewDeadLetter wrote about a record.
func ParseDeadLetter(rec *Record) (*DeadLetter, error) {
	text := func(name string) string { v, _ := rec.Header(name); return string(v) }
	d := &DeadLetter{Reason: text(HeaderDeadReason), Topic: text(HeaderDeadTopic)}
	id, err1 := ParseTopicID(text(HeaderDeadTopicID))
	p, err2 := strconv.ParseInt(text(HeaderDeadPartition), 10, 32)
	o, err3 := strconv.ParseInt(text(HeaderDeadOffset), 10, 64)
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			return nil, fmt.Errorf("%w: dead letter: %w", ErrData, err)
		}
	}
	d.TopicId, d.Partition, d.Offset = id[:], int32(p), o
	return d, nil
}

// Undead returns the record of a dead letter as it was, at the position where it stood. The error is ErrNotWhole when
// the letter only names it.
func Undead(letter *Record) (Record, error) {
	d, err := ParseDeadLetter(letter)
	if err != nil {
		return Record{}, err
	}
	if sum, cut := letter.Header(HeaderDeadSHA256); cut {
		return Record{}, fmt.Errorf("%w: only its SHA-256, %s", ErrNotWhole, sum)
	}
	rec := Record{Topic: d.Topic, Partition: d.Partition, Offset: d.Offset, Key: letter.Key, Value: letter.Value}
	for _, h := range letter.Headers {
		if !strings.HasPrefix(h.Key, headersDead) {
			rec.Headers = append(rec.Headers, h)
		}
	}
	return rec, nil
}
