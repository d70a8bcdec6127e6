package topology

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quiesce/quiesce/codecs"
)

// NotifyQueue is the internal queue of notification deliveries.
const NotifyQueue = "notify"

// Queue is a work queue: one topic of released tasks, and one topic for each retry delay. The delay of a tier is
// constant, so its records are in due order.
type Queue struct {
	Name       string
	Partitions int32           // the most workers that can take tasks at once; default 128
	Retries    []time.Duration // the delays, whole milliseconds; default 1s 4s 16s 64s
}

// WithDefaults returns the queue with absent fields filled in.
func (q Queue) WithDefaults() Queue {
	def(&q.Partitions, 128)
	if q.Retries == nil {
		q.Retries = []time.Duration{time.Second, 4 * time.Second, 16 * time.Second, 64 * time.Second}
	}
	return q
}

// Validate reports what is wrong with the queue.
func (q Queue) Validate() error {
	if err := codecs.ValidID("queue", q.Name); err != nil {
		return err
	}
	if strings.Contains(q.Name, retriesSuffix) {
		return fmt.Errorf("queue %q: %q in a name means a retry tier", q.Name, retriesSuffix)
	}
	if q.Partitions < 1 || q.Partitions > MaxPartitions {
		return fmt.Errorf("queue %q: %d partitions, from 1 to %d", q.Name, q.Partitions, MaxPartitions)
	}
	for i, d := range q.Retries {
		if d < time.Millisecond || d%time.Millisecond != 0 || slices.Index(q.Retries, d) < i {
			return fmt.Errorf("queue %q: retry delay %v: whole milliseconds from 1ms, each once", q.Name, d)
		}
	}
	return nil
}

// WorkTopic is the topic of a queue, and the consumer group of its workers.
func WorkTopic(prefix, queue string) string { return codecs.Topic(prefix, "work."+queue) }

// RetryTopic is the topic of a queue's tier of that delay, for example quiesce.work.render.retry-4s.
func RetryTopic(prefix, queue string, delay time.Duration) string {
	return WorkTopic(prefix, queue) + retriesSuffix + shortDuration(delay)
}

// shortDuration prints 4s as 4s, 64s as 64s, 1500ms as 1500ms: one unit, so that it may stand in a topic's name.
func shortDuration(d time.Duration) string {
	if d%time.Second == 0 {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return fmt.Sprintf("%dms", d/time.Millisecond)
}

// Topics returns the queue's topic and those of its retry tiers.
func (q Queue) Topics(prefix string) []string {
	names := []string{WorkTopic(prefix, q.Name)}
	for _, d := range q.Retries {
		names = append(names, RetryTopic(prefix, q.Name, d))
	}
	return names
}
