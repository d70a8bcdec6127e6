package sim

import (
	"context"
	"sync"
	"time"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/worker"
)

// Log is the topics of a deployment, one partition each, records in order of arrival.
type Log struct {
	ack time.Duration

	mu     sync.Mutex
	topics map[string]*topic
}

type topic struct {
	records []codecs.Record
	grown   chan struct{} // closed and replaced when there are more
}

var _ worker.Log = (*Log)(nil)

// NewLog returns an empty log that acknowledges records after ack.
func NewLog(ack time.Duration) *Log { return &Log{ack: ack, topics: map[string]*topic{}} }

func (l *Log) topic(name string) *topic {
	t := l.topics[name]
	if t == nil {
		t = &topic{grown: make(chan struct{})}
		l.topics[name] = t
	}
	return t
}

// Add appends a record and returns its offset.
func (l *Log) Add(rec *codecs.Record) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.topic(rec.Topic)
	r := *rec
	r.Partition, r.Offset, r.Time = 0, int64(len(t.records)), time.Now().UnixMilli()
	t.records = append(t.records, r)
	close(t.grown)
	t.grown = make(chan struct{})
	return r.Offset
}

// Append implements worker.Log.
func (l *Log) Append(_ context.Context, rec *codecs.Record, done func(partition int32, offset int64, err error)) {
	offset := l.Add(rec)
	time.AfterFunc(l.ack, func() { done(0, offset, nil) })
}

// Read returns the records of a topic from an offset on; it blocks until there are some.
func (l *Log) Read(ctx context.Context, name string, from int64) ([]codecs.Record, error) {
	for {
		l.mu.Lock()
		t := l.topic(name)
		recs, grown := t.records[min(from, int64(len(t.records))):], t.grown
		l.mu.Unlock()
		if len(recs) > 0 {
			return recs, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-grown:
		}
	}
}

// follow calls fn with every record of a topic until ctx is done or fn fails.
func (l *Log) follow(ctx context.Context, name string, fn func(*codecs.Record) error) error {
	for from := int64(0); ; {
		recs, err := l.Read(ctx, name, from)
		if err != nil {
			return nil // ctx is done
		}
		for i := range recs {
			if err := fn(&recs[i]); err != nil {
				return err
			}
		}
		from += int64(len(recs))
	}
}

// at returns the record at an offset; false = there is none.
func (l *Log) at(name string, offset int64) (codecs.Record, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.topic(name)
	if offset < 0 || offset >= int64(len(t.records)) {
		return codecs.Record{}, false
	}
	return t.records[offset], true
}
