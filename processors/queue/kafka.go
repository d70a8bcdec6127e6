package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// Kafka is a Consumer on a topic and a consumer group.
type Kafka struct {
	cfg     Config
	cl      *kgo.Client
	topicID [16]byte

	stop   context.CancelFunc
	closed context.Context
	loops  sync.WaitGroup

	commits sync.Mutex // one commit at a time, in order

	mu      sync.Mutex
	parts   map[int32]*partition
	ready   backlog
	running int           // deliveries that are out
	alone   bool          // the one that is out is a suspect
	changed chan struct{} // closed and replaced whenever something may be taken or polled
}

var _ Consumer = (*Kafka)(nil)

// partition is one owned partition of the queue's topic.
type partition struct {
	*progress
	id      int32
	next    int64 // the offset after the last one fetched; -1 = none yet
	pending int   // fetched, not handed out
	running map[int64]*Delivery
	dirty   bool // something to commit
}

// Open joins the queue's consumer group.
func Open(ctx context.Context, cfg Config) (*Kafka, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	q := &Kafka{cfg: cfg, parts: map[int32]*partition{}, changed: make(chan struct{})}
	opts := []kgo.Opt{
		kgo.SeedBrokers(cfg.Bootstrap...), kgo.ConsumeTopics(cfg.topic()), kgo.ConsumerGroup(cfg.group()),
		kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnOffsetsFetched(q.fetched), kgo.OnPartitionsRevoked(q.revoked), kgo.OnPartitionsLost(q.lost),
		kgo.FetchMaxWait(500 * time.Millisecond), kgo.ProducerLinger(0), kgo.RequiredAcks(kgo.AllISRAcks()),
	}
	if cfg.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(cfg.InstanceID))
	}
	cl, err := kgo.NewClient(append(opts, cfg.Options...)...)
	if err != nil {
		return nil, fmt.Errorf("queue %s: %w", cfg.Queue, err)
	}
	topics, err := kadm.NewClient(cl).ListTopics(ctx, cfg.topic())
	if err == nil {
		err = topics.Error()
	}
	if err != nil {
		cl.Close()
		return nil, fmt.Errorf("queue %s: topic %s: %w", cfg.Queue, cfg.topic(), err)
	}
	q.cl, q.topicID = cl, topics[cfg.topic()].ID
	q.closed, q.stop = context.WithCancel(context.Background())
	q.loops.Go(q.poll)
	q.loops.Go(q.commitDone)
	return q, nil
}

// Close leaves the group. Deliveries that are still out are given back without counting.
func (q *Kafka) Close() error {
	q.mu.Lock()
	for _, p := range q.parts {
		q.interrupt(p)
	}
	q.mu.Unlock()
	q.stop()
	q.loops.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), q.cfg.Grace+5*time.Second)
	defer cancel()
	q.waitIdle(ctx, nil)
	err := q.commit(ctx, nil)
	q.cl.Close()
	return err
}

// poll fetches ahead while the backlog is small.
func (q *Kafka) poll() {
	for {
		if !q.wait(q.closed, func() bool { return q.ready.len() < q.cfg.Backlog }) {
			return
		}
		fetches := q.cl.PollRecords(q.closed, q.cfg.Backlog)
		if q.closed.Err() != nil || fetches.IsClientClosed() {
			return
		}
		fetches.EachError(func(topic string, p int32, err error) {
			if !errors.Is(err, context.Canceled) {
				q.cfg.Logger.Warn("queue fetch failed", "topic", topic, "partition", p, "error", err)
			}
		})
		q.mu.Lock()
		fetches.EachRecord(q.add)
		q.notify()
		q.mu.Unlock()
	}
}

// add takes a fetched record into the backlog.
func (q *Kafka) add(rec *kgo.Record) {
	p := q.parts[rec.Partition]
	if p == nil { // revoked since the fetch
		return
	}
	if p.next < 0 && rec.Offset > p.base && len(p.done) == 0 {
		p.base = rec.Offset // the group had no offset yet, or older records are gone
	}
	if p.next >= 0 && rec.Offset > p.next {
		p.skip(p.next, rec.Offset) // no record stands there
	}
	p.next = rec.Offset + 1
	if p.isDone(rec.Offset) {
		return
	}
	task, err := decodeTask(rec)
	if err != nil {
		q.cfg.Logger.Error("queue record is not a task", "topic", rec.Topic, "partition", rec.Partition, "offset", rec.Offset, "error", err)
		q.deadLetter(rec, err)
		return
	}
	d := &Delivery{Task: task, owner: q, part: p.id, offset: rec.Offset}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.Count = p.counts[rec.Offset] + 1
	p.pending++
	q.ready.push(d, d.Count > q.cfg.IsolateAfter)
}

// deadLetter sends a record that is not a task to the dead letter and finishes its offset once that is durable.
func (q *Kafka) deadLetter(rec *kgo.Record, reason error) {
	dl := &kgo.Record{Topic: codecs.Topic(q.cfg.Prefix, codecs.TopicDeadLetter), Key: rec.Key, Value: rec.Value,
		Headers: append(rec.Headers, kgo.RecordHeader{Key: "quiesce-reason", Value: []byte(reason.Error())},
			kgo.RecordHeader{Key: "quiesce-position", Value: fmt.Appendf(nil, "%s/%d/%d", rec.Topic, rec.Partition, rec.Offset)})}
	q.cl.Produce(q.closed, dl, func(_ *kgo.Record, err error) {
		if err != nil {
			q.cfg.Logger.Error("dead letter not written; the record stays in the queue", "topic", rec.Topic, "offset", rec.Offset, "error", err)
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

// notify wakes everybody who waits for a change; q.mu is held.
func (q *Kafka) notify() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// wait blocks until ok holds (checked under q.mu) or ctx is done; it reports whether ok held.
func (q *Kafka) wait(ctx context.Context, ok func() bool) bool {
	for {
		q.mu.Lock()
		held, changed := ok(), q.changed
		q.mu.Unlock()
		if held {
			return ctx.Err() == nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
}

// Backlog is the number of tasks that are fetched and wait to be received.
func (q *Kafka) Backlog() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready.len()
}
