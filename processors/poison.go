package processors

import (
	"slices"
	"strconv"

	"github.com/quiesce/quiesce/codecs"
)

// deadLetter reports a record that cannot be taken, and buries it.
func (p *part) deadLetter(rec *codecs.Record, reason string) {
	p.log.Warn("record sent to the dead letter", "topic", rec.Topic, "partition", rec.Partition, "offset", rec.Offset, "reason", reason)
	p.bury(rec, reason)
}

// park buries a record of a quarantined row, marked so that a repair finds it.
func (p *part) park(rec *codecs.Record, reason string) {
	p.bury(rec, reason, header(codecs.HeaderDeadParked, "1"))
}

// bury sends a record to the dead-letter topic, in its place among the outputs. No row holds it: a replay makes the same
// record again.
func (p *part) bury(rec *codecs.Record, reason string, more ...codecs.Header) {
	p.m.dead.Inc()
	d := codecs.NewDeadLetter(codecs.TopicDeadLetter, rec, p.topicID, reason)
	d.Headers = append(d.Headers, more...)
	p.open.send(copyOf(&d, rec.Offset))
}

// misplaced re-routes a record whose key belongs to another partition, once; the second time it is dead.
func (p *part) misplaced(rec *codecs.Record) bool {
	if len(rec.Key) == 0 || p.off.noReroute || IsLocal(p.machine) || codecs.Partition(rec.Key, p.partitions) == p.id {
		return false
	}
	if _, again := rec.Header(codecs.HeaderMoved); again {
		p.deadLetter(rec, "wrong partition, moved once already")
		return true
	}
	p.m.moved.Inc()
	p.log.Warn("record moved to the partition of its key", "partition", rec.Partition, "offset", rec.Offset)
	o := copyOf(rec, rec.Offset)
	o.topic = p.machine.Input()
	o.headers = append(o.headers, header(codecs.HeaderMoved, strconv.Itoa(int(rec.Partition))))
	p.open.send(o)
	return true
}

// copyOf makes an output of the input at source that shares no memory with the record.
func copyOf(rec *codecs.Record, source int64) *output {
	o := &output{source: source, index: -1, topic: rec.Topic, toPart: -1, key: slices.Clone(rec.Key), value: slices.Clone(rec.Value)}
	for _, h := range rec.Headers {
		o.headers = append(o.headers, codecs.Header{Key: h.Key, Value: slices.Clone(h.Value)})
	}
	return o
}

func header(name, value string) codecs.Header { return codecs.Header{Key: name, Value: []byte(value)} }
