package processors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
)

// viewTopics is goka's topic manager for a view: it creates nothing, and notes where the topic starts and ends.
type viewTopics struct{ parts []*viewPart }

var _ goka.TopicManager = viewTopics{}

// EnsureTableExists, EnsureStreamExists and EnsureTopicExists are not used by views.
func (v viewTopics) EnsureTableExists(string, int) error  { return errOwn }
func (v viewTopics) EnsureStreamExists(string, int) error { return errOwn }
func (v viewTopics) EnsureTopicExists(string, int, int, map[string]string) error {
	return errOwn
}

// Partitions implements goka.TopicManager.
func (v viewTopics) Partitions(string) ([]int32, error) {
	ids := make([]int32, len(v.parts))
	for i := range ids {
		ids[i] = int32(i)
	}
	return ids, nil
}

// errLongOutage: the view was away for so long that deletes may have been compacted away; its copy is begun again.
var errLongOutage = errors.New("no contact with the topic for half of delete.retention.ms")

// GetOffset asks the leader. goka calls it at the start and at each reconnection.
func (v viewTopics) GetOffset(topic string, partition int32, at int64) (int64, error) {
	p := v.parts[partition]
	ctx, cancel := context.WithTimeout(p.ctx, 30*time.Second)
	defer cancel()
	if at == sarama.OffsetOldest {
		o, err := p.logs.Start(ctx, topic, partition)
		if err == nil {
			p.start.Store(o)
		}
		return o, err
	}
	if last := p.seen.Load(); last > 0 && time.Since(time.Unix(0, last)) > p.f.cfg.Timing.DeleteRetention/2 {
		p.fatal(fmt.Errorf("view of %s, partition %d: %w", topic, partition, errLongOutage))
		return 0, errLongOutage
	}
	o, err := p.logs.End(ctx, topic, partition)
	if err == nil {
		p.end.Store(o)
		p.seen.Store(time.Now().UnixNano())
	}
	return o, err
}

// Close implements goka.TopicManager; the client belongs to the incarnation.
func (v viewTopics) Close() error { return nil }

// reconnect is the wait between two attempts to reach the broker: doubled up to 2 s.
type reconnect struct{ first, last time.Duration }

// Duration implements goka.Backoff.
func (r *reconnect) Duration() time.Duration {
	r.last = min(max(2*r.last, r.first), 2*time.Second)
	return r.last
}

// Reset implements goka.Backoff.
func (r *reconnect) Reset() { r.last = 0 }
