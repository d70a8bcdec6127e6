package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Kafka is a Consumer on a topic and a consumer group.
type Kafka struct {
	cfg     Config
	cl      *kgo.Client
	topicID [16]byte

	stop   context.CancelFunc
	closed context.Context
	loops  sync.WaitGroup

	commits sync.Mutex  // one commit at a time, in order
	gone    atomic.Bool // as if killed: nothing is committed any more (tests)

	mu      sync.Mutex
	parts   map[int32]*partition
	ready   backlog
	anew    map[int32]bool // partitions whose committed offset is of another incarnation of the topic: begin anew
	running int            // deliveries that are out
	alone   bool           // the one that is out is a suspect
	changed chan struct{}  // closed and replaced whenever something may be taken or polled
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

// sessionTimeout is how long the tasks of a worker that died without a goodbye wait.
const sessionTimeout = 10 * time.Second

// Open joins the queue's consumer group.
func Open(ctx context.Context, cfg Config) (*Kafka, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	q := &Kafka{cfg: cfg, parts: map[int32]*partition{}, anew: map[int32]bool{}, changed: make(chan struct{})}
	q.closed, q.stop = context.WithCancel(context.Background())
	var err error
	if q.topicID, err = topicID(ctx, cfg); err != nil { // before the group begins: fetched needs it
		return nil, fmt.Errorf("queue %s: topic %s: %w", cfg.Queue, cfg.topic(), err)
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(cfg.Bootstrap...), kgo.ConsumeTopics(cfg.topic()), kgo.ConsumerGroup(cfg.group()),
		kgo.SessionTimeout(sessionTimeout), kgo.HeartbeatInterval(sessionTimeout / 10), // others learn of a death by their next one
		kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnOffsetsFetched(q.fetched), kgo.AdjustFetchOffsetsFn(q.adjust),
		kgo.OnPartitionsRevoked(q.revoked), kgo.OnPartitionsLost(q.lost), kgo.BlockRebalanceOnPoll(),
		kgo.FetchMaxWait(500 * time.Millisecond), kgo.ProducerLinger(0), kgo.RequiredAcks(kgo.AllISRAcks()),
	}
	if cfg.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(cfg.InstanceID))
	}
	if q.cl, err = kgo.NewClient(append(opts, cfg.Options...)...); err != nil {
		return nil, fmt.Errorf("queue %s: %w", cfg.Queue, err)
	}
	q.loops.Go(q.poll)
	q.loops.Go(q.commitDone)
	return q, nil
}

// topicID names the incarnation of the queue's topic, which must exist.
func topicID(ctx context.Context, cfg Config) ([16]byte, error) {
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(cfg.Bootstrap...)}, cfg.Options...)...)
	if err != nil {
		return [16]byte{}, err
	}
	defer cl.Close()
	topics, err := kadm.NewClient(cl).ListTopics(ctx, cfg.topic())
	if err == nil {
		err = topics.Error()
	}
	return topics[cfg.topic()].ID, err
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
	wait, end := context.WithTimeout(context.Background(), q.cfg.Grace)
	q.waitIdle(wait, nil)
	end()
	q.handOver(nil)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := q.commit(ctx, nil)
	q.cl.CloseAllowingRebalance()
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
			q.cl.AllowRebalance()
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
		q.cl.AllowRebalance() // not before add: what was fetched belongs to the assignment that add sees
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
	if rec.Offset < p.next {
		q.restart(p, rec.Offset)
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
