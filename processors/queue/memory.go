package queue

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

// Memory is a broker of queues in the process: the same contract without Kafka, for tests and simulations. Its only
// clock is package time, so that it runs in a synctest bubble.
type Memory struct {
	maxDeliveries, isolateAfter int

	mu     sync.Mutex
	queues map[string]*memoryQueue
}

type memoryQueue struct {
	ready   backlog
	changed chan struct{}
	nextID  int64
	counts  map[int64]int
}

var _ Producer = (*Memory)(nil)

// NewMemory returns a broker without queues; they are made at first use.
func NewMemory() *Memory {
	return &Memory{maxDeliveries: DefaultMaxDeliveries, isolateAfter: 2, queues: map[string]*memoryQueue{}}
}

func (m *Memory) queue(name string) *memoryQueue {
	q := m.queues[name]
	if q == nil {
		q = &memoryQueue{changed: make(chan struct{}), counts: map[int64]int{}}
		m.queues[name] = q
	}
	return q
}

// Enqueue implements Producer.
func (m *Memory) Enqueue(_ context.Context, queue string, delay time.Duration, tasks ...*codecs.Task) error {
	copies := make([]*codecs.Task, len(tasks))
	for i, t := range tasks {
		copies[i] = proto.Clone(t).(*codecs.Task)
	}
	add := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		q := m.queue(queue)
		for _, t := range copies {
			q.nextID++
			q.ready.push(&Delivery{Task: t, offset: q.nextID}, false)
		}
		q.notify()
	}
	if delay > 0 {
		time.AfterFunc(delay, add)
		return nil
	}
	add()
	return nil
}

func (q *memoryQueue) notify() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// Len is the number of tasks of a queue that wait to be received.
func (m *Memory) Len(queue string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.queue(queue).ready.len()
}

// Consumer returns a new consumer of a queue.
func (m *Memory) Consumer(queue string) *MemoryConsumer {
	return &MemoryConsumer{m: m, name: queue, out: map[*Delivery]bool{}, done: make(chan struct{})}
}

// MemoryConsumer is one consumer of a queue of Memory: what a process would be.
type MemoryConsumer struct {
	m     *Memory
	name  string
	out   map[*Delivery]bool // under m.mu
	alone bool
	once  sync.Once
	done  chan struct{}
}

var _ Consumer = (*MemoryConsumer)(nil)

// Receive implements Consumer.
func (c *MemoryConsumer) Receive(ctx context.Context, limit int) ([]*Delivery, error) {
	for {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		c.m.mu.Lock()
		ds := c.take(limit)
		changed := c.m.queue(c.name).changed
		c.m.mu.Unlock()
		if len(ds) > 0 {
			return ds, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.done:
			return nil, ErrClosed
		case <-changed:
		}
	}
}

func (c *MemoryConsumer) take(limit int) []*Delivery {
	select {
	case <-c.done:
		return nil
	default:
	}
	q := c.m.queue(c.name)
	if c.alone {
		return nil
	}
	if q.ready.suspect() != nil {
		if len(c.out) > 0 {
			return nil // it runs alone: let the others end
		}
		c.alone = true
		limit = 1
	}
	var ds []*Delivery
	for len(ds) < limit {
		var d *Delivery
		if c.alone {
			d = q.ready.popSuspect()
		} else if d = q.ready.pop(nil); d == nil {
			break
		}
		q.counts[d.offset]++
		n := q.counts[d.offset]
		fresh := &Delivery{Task: d.Task, Count: n, Buried: n > c.m.maxDeliveries, owner: c, offset: d.offset}
		fresh.ctx, fresh.cancel = context.WithCancel(context.Background())
		c.out[fresh] = true
		ds = append(ds, fresh)
	}
	return ds
}

func (c *MemoryConsumer) settle(d *Delivery, done bool) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if !c.out[d] {
		return
	}
	delete(c.out, d)
	c.alone = false
	q := c.m.queue(c.name)
	if done {
		delete(q.counts, d.offset)
	} else {
		q.counts[d.offset]--
		q.ready.push(&Delivery{Task: d.Task, offset: d.offset}, q.counts[d.offset]+1 > c.m.isolateAfter)
	}
	q.notify()
}

func (c *MemoryConsumer) origin(d *Delivery) codecs.Record {
	return codecs.Record{Topic: c.name, Offset: d.offset}
}

func (c *MemoryConsumer) topic() codecs.TopicID { return codecs.TopicID{} }

// Close implements Consumer.
func (c *MemoryConsumer) Close() error {
	c.leave(false)
	return nil
}

// Crash ends the consumer as kill -9 would: its deliveries count and go to others.
func (c *MemoryConsumer) Crash() { c.leave(true) }

func (c *MemoryConsumer) leave(crash bool) {
	c.once.Do(func() { close(c.done) })
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	q := c.m.queue(c.name)
	for d := range c.out {
		d.cancel()
		if !crash {
			q.counts[d.offset]--
		}
		q.ready.push(&Delivery{Task: d.Task, offset: d.offset}, q.counts[d.offset]+1 > c.m.isolateAfter)
	}
	clear(c.out)
	q.notify()
}

// Backlog is the number of tasks that wait to be received.
func (c *MemoryConsumer) Backlog() int { return c.m.Len(c.name) }
