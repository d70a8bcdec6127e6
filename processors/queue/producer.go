package queue

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/topology"
)

// KafkaProducer appends tasks to the topics of queues.
type KafkaProducer struct {
	cl      *kgo.Client
	prefix  string
	source  string
	retries func(queue string) []time.Duration

	mu         sync.Mutex
	partitions map[string]int32
}

var _ Producer = (*KafkaProducer)(nil)

// NewProducer returns a producer on a client that partitions by hand (kgo.ManualPartitioner). retries gives the delays
// of a queue's tiers; nil = those of topology.Queue. The client stays the caller's.
func NewProducer(cl *kgo.Client, prefix, source string, retries func(queue string) []time.Duration) *KafkaProducer {
	if retries == nil {
		def := topology.Queue{}.WithDefaults().Retries
		retries = func(string) []time.Duration { return def }
	}
	return &KafkaProducer{cl: cl, prefix: prefix, source: source, retries: retries, partitions: map[string]int32{}}
}

// Tier returns the delay of the tier for a wanted delay: the shortest that is not shorter, else the longest; 0 for no
// delay or where there are no tiers.
func Tier(tiers []time.Duration, delay time.Duration) time.Duration {
	if delay <= 0 || len(tiers) == 0 {
		return 0
	}
	best := slices.Max(tiers)
	for _, t := range tiers {
		if t >= delay && t < best {
			best = t
		}
	}
	return best
}

// Enqueue implements Producer. An error may mean that some of the tasks were appended.
func (p *KafkaProducer) Enqueue(ctx context.Context, queue string, delay time.Duration, tasks ...*codecs.Task) error {
	topic := topology.WorkTopic(p.prefix, queue)
	if tier := Tier(p.retries(queue), delay); tier > 0 {
		topic = topology.RetryTopic(p.prefix, queue, tier)
	}
	n, err := p.count(ctx, topic)
	if err != nil {
		return fmt.Errorf("queue %s: %w", queue, err)
	}
	recs := make([]*kgo.Record, len(tasks))
	for i, t := range tasks {
		rec, err := codecs.Encode(topic, Key(t), p.source, &codecs.Event{Type: codecs.TypeTask, ID: taskID(t), Data: t})
		if err != nil {
			return err
		}
		recs[i] = toKgo(&rec)
		recs[i].Partition = Partition(t, n)
	}
	if err := p.cl.ProduceSync(ctx, recs...).FirstErr(); err != nil {
		return fmt.Errorf("queue %s: %d tasks to %s: %w", queue, len(tasks), topic, err)
	}
	return nil
}

func taskID(t *codecs.Task) string {
	return fmt.Sprintf("%s/%s/%d/%d", Key(t), t.Run, t.Round, t.Attempt)
}

// count returns the number of partitions of a topic; it is asked once.
func (p *KafkaProducer) count(ctx context.Context, topic string) (int32, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.partitions[topic]; n > 0 {
		return n, nil
	}
	topics, err := kadm.NewClient(p.cl).ListTopics(ctx, topic)
	if err == nil {
		err = topics.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("topic %s: %w", topic, err)
	}
	n := int32(len(topics[topic].Partitions))
	if n == 0 {
		return 0, fmt.Errorf("topic %s: %w", topic, kerr.UnknownTopicOrPartition)
	}
	p.partitions[topic] = n
	return n, nil
}

func fromKgo(rec *kgo.Record) codecs.Record {
	out := codecs.Record{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset, Key: rec.Key, Value: rec.Value,
		Headers: make([]codecs.Header, len(rec.Headers))}
	for i, h := range rec.Headers {
		out.Headers[i] = codecs.Header{Key: h.Key, Value: h.Value}
	}
	return out
}

func toKgo(rec *codecs.Record) *kgo.Record {
	out := &kgo.Record{Topic: rec.Topic, Key: rec.Key, Value: rec.Value, Headers: make([]kgo.RecordHeader, len(rec.Headers))}
	for i, h := range rec.Headers {
		out.Headers[i] = kgo.RecordHeader{Key: h.Key, Value: h.Value}
	}
	return out
}
