package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetched sees the committed offsets and their metadata before a partition is consumed.
func (q *Kafka) fetched(_ context.Context, _ *kgo.Client, resp *kmsg.OffsetFetchResponse) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	take := func(id int32, offset int64, metadata *string) {
		m := ""
		if metadata != nil {
			m = *metadata
		}
		p, err := decodeProgress(max(offset, 0), q.topicID, m)
		if err != nil {
			q.cfg.Logger.Warn("commit metadata ignored; tasks above the offset may run again",
				"queue", q.cfg.Queue, "partition", id, "error", err)
		}
		if err == nil && p.stale {
			q.cfg.Logger.Warn("committed offset is of an earlier topic of this name; the queue is read from its start",
				"queue", q.cfg.Queue, "partition", id, "offset", offset)
			offset, q.anew[id] = -1, true
		}
		q.forget(id)
		q.parts[id] = &partition{progress: p, id: id, next: -1, running: map[int64]*Delivery{}}
		if offset >= 0 {
			q.parts[id].next = offset
		}
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			take(p.Partition, p.Offset, p.Metadata)
		}
	}
	for _, g := range resp.Groups {
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				take(p.Partition, p.Offset, p.Metadata)
			}
		}
	}
	return nil
}

// adjust makes the partitions whose committed offset means nothing begin at their start.
func (q *Kafka) adjust(_ context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for id := range q.anew {
		if parts := offsets[q.cfg.topic()]; parts != nil {
			parts[id] = kgo.NewOffset().AtStart()
		}
	}
	clear(q.anew)
	return offsets, nil
}

// restart forgets what is known of a partition whose log begins anew below what was read: tasks may run again, none is
// taken for done. q.mu is held.
func (q *Kafka) restart(p *partition, at int64) {
	q.cfg.Logger.Error("the queue's log was cut or made anew; reading on from there", "queue", q.cfg.Queue, "partition", p.id,
		"offset", at, "expected", p.next)
	q.interrupt(p)
	if len(p.running) > 0 {
		q.alone = false
	}
	q.running -= len(p.running)
	clear(p.running)
	p.progress, p.next, p.dirty = newProgress(at), at, true
}

// revoked interrupts what runs on the partitions that go to others, waits a little for it, and commits.
func (q *Kafka) revoked(ctx context.Context, _ *kgo.Client, lost map[string][]int32) {
	ids := lost[q.cfg.topic()]
	if len(ids) == 0 { // cooperative: others come or go, nothing moves from here
		return
	}
	q.mu.Lock()
	for _, id := range ids {
		if p := q.parts[id]; p != nil {
			q.interrupt(p)
		}
	}
	q.notify()
	q.mu.Unlock()
	if q.closed.Err() == nil { // Close has waited
		wait, cancel := context.WithTimeout(ctx, q.cfg.Grace)
		defer cancel()
		q.waitIdle(wait, ids)
	}
	q.handOver(ids)
	if err := q.lastCommit(ctx); err != nil {
		q.cfg.Logger.Warn("last commit of revoked partitions failed; tasks may run again", "queue", q.cfg.Queue, "error", err)
	}
	q.drop(ids)
}

// lastCommit commits what is about to be handed over. A group that is busy with another rebalance refuses that for a
// moment; what is not committed runs again.
func (q *Kafka) lastCommit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, q.cfg.Grace)
	defer cancel()
	for {
		err := q.commit(ctx, nil)
		if !errors.Is(err, kerr.RebalanceInProgress) || sleep(ctx, 20*time.Millisecond) != nil {
			return err
		}
	}
}

// handOver takes back what still runs on the partitions (nil = on all): its delivery does not count.
func (q *Kafka) handOver(ids []int32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for id, p := range q.parts {
		if ids != nil && !slices.Contains(ids, id) {
			continue
		}
		for o, d := range p.running {
			q.out(p, d)
			p.uncount(o)
		}
		p.dirty = true
	}
}

// lost forgets partitions that already belong to others.
func (q *Kafka) lost(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	q.mu.Lock()
	for _, id := range lost[q.cfg.topic()] {
		if p := q.parts[id]; p != nil {
			q.interrupt(p)
		}
	}
	q.mu.Unlock()
	q.drop(lost[q.cfg.topic()])
}

// interrupt ends the contexts of a partition's deliveries and takes it out of the backlog; q.mu is held.
func (q *Kafka) interrupt(p *partition) {
	q.ready.drop(p.id)
	p.pending = 0
	for _, d := range p.running {
		d.cancel()
	}
}

// waitIdle waits until nothing runs on the partitions (nil = on none).
func (q *Kafka) waitIdle(ctx context.Context, ids []int32) {
	q.wait(ctx, func() bool {
		if ids == nil {
			return q.running == 0
		}
		for _, id := range ids {
			if p := q.parts[id]; p != nil && len(p.running) > 0 {
				return false
			}
		}
		return true
	})
}

func (q *Kafka) drop(ids []int32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range ids {
		q.forget(id)
	}
	q.notify()
}

// forget leaves nothing of a partition behind; q.mu is held.
func (q *Kafka) forget(id int32) {
	p := q.parts[id]
	if p == nil {
		return
	}
	q.interrupt(p)
	if len(p.running) > 0 {
		q.alone = false
	}
	q.running -= len(p.running)
	delete(q.parts, id)
}
