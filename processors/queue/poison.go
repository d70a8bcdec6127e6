package queue

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// deadLetter sends a record that is not a task to the dead letter and finishes its offset once that is durable.
func (q *Kafka) deadLetter(rec *kgo.Record, reason error) {
	q.deadLetterWithin(codecs.MaxDeadLetter, rec, reason)
}

// shortDeadLetter is the limit that every topic takes: what does not fit is named, not copied.
const shortDeadLetter = 64 << 10

func (q *Kafka) deadLetterWithin(limit int, rec *kgo.Record, reason error) {
	from := fromKgo(rec)
	letter := codecs.NewDeadLetterWithin(limit, codecs.Topic(q.cfg.Prefix, codecs.TopicDeadLetter), &from,
		codecs.TopicID(q.topicID), reason.Error())
	q.cl.Produce(q.closed, toKgo(&letter), func(_ *kgo.Record, err error) {
		if errors.Is(err, kerr.MessageTooLarge) && limit > shortDeadLetter {
			q.deadLetterWithin(shortDeadLetter, rec, reason)
			return
		}
		if err != nil {
			q.cfg.Logger.Error("dead letter not written; the record stays in the queue", "topic", rec.Topic,
				"partition", rec.Partition, "offset", rec.Offset, "error", err)
			return
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		if p := q.parts[rec.Partition]; p != nil {
			p.finish(rec.Offset)
			p.dirty = true
		}
	})
}
