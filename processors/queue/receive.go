package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/quiesce/quiesce/codecs"
)

// Receive returns deliveries once their counts are committed.
func (q *Kafka) Receive(ctx context.Context, limit int) ([]*Delivery, error) {
	for {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		q.mu.Lock()
		ds, changed := q.take(limit), q.changed
		if len(ds) > 0 && q.ready.len() < q.cfg.Backlog {
			q.notify() // poll may go on
		}
		q.mu.Unlock()
		if len(ds) == 0 {
			select {
			case <-q.closed.Done():
				return nil, ErrClosed
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-changed:
			}
			continue
		}
		of := map[int32]bool{}
		for _, d := range ds {
			of[d.part] = true
		}
		if err := q.commit(q.closed, of); err != nil {
			q.cfg.Logger.Warn("deliveries not committed; given back", "queue", q.cfg.Queue, "error", err)
			for _, d := range ds {
				q.again(d)
			}
			if err := sleep(ctx, 50*time.Millisecond); err != nil {
				return nil, err
			}
			continue
		}
		live := ds[:0]
		for _, d := range ds {
			if d.ctx.Err() == nil {
				live = append(live, d)
			}
		}
		if len(live) > 0 {
			return live, nil
		}
	}
}

// take picks what may be handed out now; q.mu is held.
func (q *Kafka) take(limit int) []*Delivery {
	if q.alone || q.closed.Err() != nil {
		return nil
	}
	if d := q.ready.suspect(); d != nil {
		if q.running > 0 {
			return nil // it runs alone: let the others end
		}
		q.ready.popSuspect()
		q.alone = true
		q.start(d)
		return []*Delivery{d}
	}
	var ds []*Delivery
	full := func(part int32) bool { return q.parts[part].full(1) }
	for len(ds) < limit {
		d := q.ready.pop(full)
		if d == nil {
			break
		}
		q.start(d)
		ds = append(ds, d)
	}
	return ds
}

func (q *Kafka) start(d *Delivery) {
	p := q.parts[d.part]
	p.counts[d.offset]++
	d.Count = p.counts[d.offset]
	d.Buried = d.Count > q.cfg.MaxDeliveries
	p.pending--
	p.running[d.offset] = d
	p.dirty = true
	q.running++
}

// settle ends a delivery: done for good, or given back as if it had not been handed out.
func (q *Kafka) settle(d *Delivery, done bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.parts[d.part]
	if p == nil || p.running[d.offset] != d {
		return
	}
	q.out(p, d)
	if done {
		p.finish(d.offset)
	} else {
		p.uncount(d.offset)
		if q.closed.Err() == nil && d.ctx.Err() == nil {
			q.push(p, d)
		}
	}
	q.notify()
}

func (q *Kafka) origin(d *Delivery) codecs.Record {
	return codecs.Record{Topic: q.cfg.topic(), Partition: d.part, Offset: d.offset}
}

func (q *Kafka) topic() codecs.TopicID { return q.topicID }

// again gives a delivery back that was never handed out.
func (q *Kafka) again(d *Delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p := q.parts[d.part]; p != nil && p.running[d.offset] == d {
		q.out(p, d)
		p.uncount(d.offset)
		if q.closed.Err() == nil && d.ctx.Err() == nil { // else its partition goes to another member
			q.push(p, d)
		}
		q.notify()
	}
}

func (q *Kafka) out(p *partition, d *Delivery) {
	delete(p.running, d.offset)
	p.dirty = true
	q.running--
	q.alone = false
}

func (q *Kafka) push(p *partition, d *Delivery) {
	fresh := &Delivery{Task: d.Task, owner: q, part: d.part, offset: d.offset, Count: p.counts[d.offset] + 1}
	fresh.ctx, fresh.cancel = context.WithCancel(context.Background())
	p.pending++
	q.ready.push(fresh, fresh.Count > q.cfg.IsolateAfter)
}

func (p *progress) uncount(o int64) {
	if p.counts[o]--; p.counts[o] <= 0 {
		delete(p.counts, o)
	}
}

// commitDone commits what was done when no Receive does it.
func (q *Kafka) commitDone() {
	t := time.NewTicker(q.cfg.CommitEvery)
	defer t.Stop()
	for {
		select {
		case <-q.closed.Done():
			return
		case <-t.C:
		}
		if err := q.commit(q.closed, nil); err != nil && q.closed.Err() == nil {
			q.cfg.Logger.Warn("queue commit failed; tried again", "queue", q.cfg.Queue, "error", err)
		}
	}
}

// commit writes offsets and metadata of the dirty partitions; an error when one of the partitions in must failed.
func (q *Kafka) commit(ctx context.Context, must map[int32]bool) error {
	q.commits.Lock()
	defer q.commits.Unlock()
	if q.gone.Load() {
		return ErrClosed
	}
	topic := q.cfg.topic()
	offsets, metadata := map[int32]kgo.EpochOffset{}, map[int32]string{}
	q.mu.Lock()
	for id, p := range q.parts {
		if p.dirty {
			offsets[id], metadata[id] = kgo.EpochOffset{Epoch: -1, Offset: p.base}, p.encode(q.topicID)
			p.dirty = false
		}
	}
	q.mu.Unlock()
	if len(offsets) == 0 {
		return nil
	}
	ctx = kgo.PreCommitFnContext(ctx, func(req *kmsg.OffsetCommitRequest) error {
		for i := range req.Topics {
			for k := range req.Topics[i].Partitions {
				p := &req.Topics[i].Partitions[k]
				m := metadata[p.Partition]
				p.Metadata = &m
			}
		}
		return nil
	})
	failed := map[int32]error{}
	q.cl.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{topic: offsets},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
			for id := range offsets {
				if err != nil {
					failed[id] = err
				}
			}
			if err != nil {
				return
			}
			for _, t := range resp.Topics {
				for _, p := range t.Partitions {
					if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
						failed[p.Partition] = err
					}
				}
			}
		})
	return q.uncommitted(failed, must)
}

// uncommitted marks the partitions of a failed commit for the next one.
func (q *Kafka) uncommitted(failed map[int32]error, must map[int32]bool) error {
	var errs []error
	q.mu.Lock()
	defer q.mu.Unlock()
	for id, err := range failed {
		p := q.parts[id]
		if p != nil {
			p.dirty = true
		}
		if p != nil || must[id] {
			errs = append(errs, fmt.Errorf("partition %d: %w", id, err))
		}
	}
	return errors.Join(errs...)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
