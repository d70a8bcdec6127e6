package queue

import (
	"context"
	"errors"
	"time"

	"github.com/quiesce/quiesce/codecs"
)

// ErrClosed is returned by a queue that was closed.
var ErrClosed = errors.New("queue is closed")

// DefaultMaxDeliveries is how often a task may be delivered without an end before it is buried.
const DefaultMaxDeliveries = 5

// Consumer takes tasks from one queue. Its methods may be called by several goroutines.
type Consumer interface {
	// Receive returns 1 to limit deliveries; it blocks until there are some. A suspect or buried delivery comes alone.
	Receive(ctx context.Context, limit int) ([]*Delivery, error)
	// Close gives back what is not done: callers first end or release their deliveries.
	Close() error
}

// Producer appends tasks to queues.
type Producer interface {
	// Enqueue appends the tasks to the queue and returns when they are durable. With a delay they are delivered no
	// earlier than that, and no earlier than others with the same delay that were enqueued before.
	Enqueue(ctx context.Context, queue string, delay time.Duration, tasks ...*codecs.Task) error
}

// Delivery is one task in the hands of one consumer.
type Delivery struct {
	Task   *codecs.Task
	Count  int  // deliveries of the task, with this one
	Buried bool // delivered too often: report it lost, do not run it

	ctx    context.Context
	cancel context.CancelFunc
	owner  settler
	part   int32
	offset int64
}

// settler is the driver that a delivery goes back to.
type settler interface {
	settle(d *Delivery, done bool)
	origin(d *Delivery) codecs.Record
	topic() codecs.TopicID
}

// Origin is the record that the task came in, as far as a dead letter names it: topic, partition, offset, and the topic's
// id. The zero value where there is no log.
func (d *Delivery) Origin() (codecs.Record, codecs.TopicID) {
	return d.owner.origin(d), d.owner.topic()
}

// Context ends when the task belongs to somebody else or the consumer is closed.
func (d *Delivery) Context() context.Context { return d.ctx }

// Done says that the task's end is durable elsewhere. Further calls do nothing.
func (d *Delivery) Done() { d.owner.settle(d, true) }

// Release gives the task back as if it had not been delivered. Further calls do nothing.
func (d *Delivery) Release() { d.owner.settle(d, false) }
