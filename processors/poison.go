package processors

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/quiesce/quiesce/codecs"
)

// Headers of a record in the dead-letter topic, beside the original ones; its key and value are the original bytes.
const (
	HeaderDeadReason    = "quiesce-dead-reason"
	HeaderDeadTopic     = "quiesce-dead-topic"
	HeaderDeadTopicID   = "quiesce-dead-topic-id"
	HeaderDeadPartition = "quiesce-dead-partition"
	HeaderDeadOffset    = "quiesce-dead-offset"
	HeaderDeadSHA256    = "quiesce-dead-sha256" // instead of a value that is too large
)

// maxDeadBytes is the largest record that the dead letter takes whole. A larger one is left where it is and named.
const maxDeadBytes = 4 << 20

// deadLetter reports a record that cannot be taken, and buries it.
func (p *part) deadLetter(rec *codecs.Record, reason string) {
	p.log.Warn("record sent to the dead letter", "topic", rec.Topic, "partition", rec.Partition, "offset", rec.Offset, "reason", reason)
	p.bury(rec, reason)
}

// bury sends a record to the dead-letter topic, in its place among the outputs. No row holds it: a replay makes the same
// record again.
func (p *part) bury(rec *codecs.Record, reason string) {
	p.m.dead.Inc()
	o := p.copyOf(rec, codecs.TopicDeadLetter)
	o.headers = append(o.headers,
		header(HeaderDeadReason, reason),
		header(HeaderDeadTopic, rec.Topic),
		header(HeaderDeadTopicID, p.topicID.String()),
		header(HeaderDeadPartition, strconv.Itoa(int(rec.Partition))),
		header(HeaderDeadOffset, strconv.FormatInt(rec.Offset, 10)))
	if o.size() > maxDeadBytes {
		sum := sha256.Sum256(o.value)
		o.value = nil
		o.headers = append(o.headers, header(HeaderDeadSHA256, hex.EncodeToString(sum[:])))
	}
	p.open.send(o)
}

// misplaced re-routes a record whose key belongs to another partition, once; the second time it is dead.
func (p *part) misplaced(rec *codecs.Record) bool {
	if len(rec.Key) == 0 || p.off.noReroute || isLocal(p.machine) || codecs.Partition(rec.Key, p.partitions) == p.id {
		return false
	}
	if _, again := rec.Header(codecs.HeaderMoved); again {
		p.deadLetter(rec, "wrong partition, moved once already")
		return true
	}
	p.m.moved.Inc()
	p.log.Warn("record moved to the partition of its key", "partition", rec.Partition, "offset", rec.Offset)
	o := p.copyOf(rec, p.machine.Input())
	o.headers = append(o.headers, header(codecs.HeaderMoved, strconv.Itoa(int(rec.Partition))))
	p.open.send(o)
	return true
}

func (p *part) copyOf(rec *codecs.Record, topic string) *output {
	o := &output{source: rec.Offset, index: -1, topic: topic, toPart: -1, key: slices.Clone(rec.Key), value: slices.Clone(rec.Value)}
	for _, h := range rec.Headers {
		o.headers = append(o.headers, codecs.Header{Key: h.Key, Value: slices.Clone(h.Value)})
	}
	return o
}

func header(name, value string) codecs.Header { return codecs.Header{Key: name, Value: []byte(value)} }
