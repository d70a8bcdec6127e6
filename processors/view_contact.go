package processors

import (
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

// goka's view calls itself running while it waits to read again after a failed fetch. What a view says of its contact is
// taken from its reads: a partition is followed while a consumer is open on it; one that was opened after a failure must
// have read a record, or have outlived some fetches.

// Waits of a view's fetches.
const (
	viewFetchWait = 250 * time.Millisecond
	viewProven    = 4 * viewFetchWait
)

// contact is a partition's contact with its topic.
type contact struct {
	open   atomic.Bool
	failed atomic.Bool  // the consumer before this one failed
	since  atomic.Int64 // this consumer was opened, ns since the epoch
}

// ok says whether the partition is followed.
func (c *contact) ok() bool {
	if !c.open.Load() {
		return false
	}
	if c.failed.Load() && time.Since(time.Unix(0, c.since.Load())) < viewProven {
		return false
	}
	return true
}

// viewConsumer tells the parts when they are read, and when no longer.
type viewConsumer struct {
	sarama.Consumer
	parts []*viewPart
}

// ConsumePartition implements sarama.Consumer.
func (c viewConsumer) ConsumePartition(topic string, id int32, offset int64) (sarama.PartitionConsumer, error) {
	pc, err := c.Consumer.ConsumePartition(topic, id, offset)
	if err != nil {
		return nil, err
	}
	p := c.parts[id]
	p.contact.since.Store(time.Now().UnixNano())
	p.contact.open.Store(true)
	return viewReader{pc, p, p.loaded.Load()}, nil
}

// viewReader is a partition being read.
type viewReader struct {
	sarama.PartitionConsumer
	part   *viewPart
	loaded bool // at the beginning: goka reads on until something fails
}

// AsyncClose implements sarama.PartitionConsumer. goka closes when all that stood in the topic is loaded, and later when
// reading failed.
func (r viewReader) AsyncClose() {
	r.part.contact.open.Store(false)
	r.part.contact.failed.Store(r.loaded)
	r.PartitionConsumer.AsyncClose()
}
