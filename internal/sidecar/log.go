package sidecar

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/repair"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// TopicLog writes the topic that a machine of a deployment reads: all replicas acknowledge, nothing lingers, the partition
// is that of the row.
type TopicLog struct {
	client  *kgo.Client
	admin   *kadm.Client
	topic   string
	logical string // its name without the prefix
	encoder codecs.Encoder
	repair  repair.Config

	mu         sync.Mutex
	partitions int32 // 0 = not known yet; never changes, since the tables follow it
}

var _ Log = (*TopicLog)(nil)

// OpenControlLog connects to the control topic of a deployment. opts are those of the deployment's clients: brokers, TLS,
// SASL. client is the name that the records carry as their source.
func OpenControlLog(prefix, client string, opts ...kgo.Opt) (*TopicLog, error) {
	return openLog(prefix, codecs.TopicControl, client, opts)
}

// OpenJobLog connects to the jobs topic.
func OpenJobLog(prefix, client string, opts ...kgo.Opt) (*TopicLog, error) {
	return openLog(prefix, codecs.TopicJobs, client, opts)
}

func openLog(prefix, topic, client string, opts []kgo.Opt) (*TopicLog, error) {
	own := []kgo.Opt{kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0), kgo.RecordPartitioner(kgo.ManualPartitioner())}
	c, err := kgo.NewClient(append(append([]kgo.Opt{}, opts...), own...)...)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", topic, err)
	}
	return &TopicLog{client: c, admin: kadm.NewClient(c), topic: codecs.Topic(prefix, topic), logical: topic,
		repair:  repair.Config{Client: opts, Prefix: prefix},
		encoder: codecs.Encoder{Source: codecs.Source(prefix, client)}}, nil
}

// Close lets go of the connection; records that were not acknowledged fail.
func (l *TopicLog) Close() { l.client.Close() }

// Append writes one event.
func (l *TopicLog) Append(ctx context.Context, key string, ev *codecs.Event) (api.Position, error) {
	n, err := l.count(ctx)
	if err != nil {
		return api.Position{}, err
	}
	rec, err := l.encoder.Encode(l.topic, key, ev)
	if err != nil {
		return api.Position{}, err
	}
	out := &kgo.Record{Topic: rec.Topic, Key: rec.Key, Value: rec.Value, Partition: codecs.Partition(rec.Key, n)}
	for _, h := range rec.Headers {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	done, err := l.client.ProduceSync(ctx, out).First()
	if err != nil {
		return api.Position{}, fmt.Errorf("produce to %s: %w", l.topic, err)
	}
	return api.Position{Partition: done.Partition, Offset: done.Offset}, nil
}

// Last returns the last position in the key's partition.
func (l *TopicLog) Last(ctx context.Context, key string) (api.Position, error) {
	n, err := l.count(ctx)
	if err != nil {
		return api.Position{}, err
	}
	p := codecs.Partition([]byte(key), n)
	ends, err := l.admin.ListEndOffsets(ctx, l.topic)
	if err != nil {
		return api.Position{}, fmt.Errorf("end of %s: %w", l.topic, err)
	}
	end, ok := ends.Lookup(l.topic, p)
	switch {
	case !ok:
		return api.Position{}, fmt.Errorf("end of %s: no partition %d", l.topic, p)
	case end.Err != nil:
		return api.Position{}, fmt.Errorf("end of %s: %w", l.topic, end.Err)
	}
	return api.Position{Partition: p, Offset: end.Offset - 1}, nil
}

// count returns the number of partitions of the topic.
func (l *TopicLog) count(ctx context.Context) (int32, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.partitions == 0 {
		n, err := partitionCount(ctx, l.admin, l.topic)
		if err == nil && n == 0 {
			err = fmt.Errorf("topic %s does not exist", l.topic)
		}
		if err != nil {
			return 0, err
		}
		l.partitions = n
	}
	return l.partitions, nil
}

// partitionCount asks for the number of partitions of a topic; 0 = it does not exist.
func partitionCount(ctx context.Context, admin *kadm.Client, topic string) (int32, error) {
	topics, err := admin.ListTopics(ctx, topic)
	if err != nil {
		return 0, fmt.Errorf("metadata of %s: %w", topic, err)
	}
	return int32(len(topics[topic].Partitions)), nil
}
