package processors

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/quiesce/quiesce/codecs"
)

// client is the producer and the reader, on franz-go.
type client struct {
	cfg Config
	kgo *kgo.Client
}

var (
	_ producer = (*client)(nil)
	_ logs     = (*client)(nil)
)

// Largest batches, as topology makes the topics.
const (
	maxRecordBytes = 1 << 20
	maxTableBytes  = 4 << 20
)

// newClient connects. The producer is idempotent, waits for all replicas, keeps the order and does not linger.
func newClient(cfg Config) (*client, error) {
	table, dead := codecs.Table(cfg.Prefix, cfg.Machine.Role()), codecs.Topic(cfg.Prefix, codecs.TopicDeadLetter)
	opts := append(kgoOptions(cfg),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(0),
		kgo.MaxBufferedRecords(1<<17),
		kgo.ProducerBatchMaxBytesFn(func(topic string) int32 {
			if topic == table || topic == dead {
				return maxTableBytes
			}
			return maxRecordBytes
		}),
		kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(func(string) func(*kgo.Record, int) int {
			return func(r *kgo.Record, n int) int {
				if r.Partition >= 0 {
					return int(r.Partition)
				}
				return int(codecs.Partition(r.Key, int32(n)))
			}
		})),
	)
	c, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	return &client{cfg, c}, nil
}

func kgoOptions(cfg Config) []kgo.Opt {
	return append([]kgo.Opt{kgo.SeedBrokers(cfg.Bootstrap...), kgo.ClientID(cfg.ClientID)}, cfg.Security.kgo()...)
}

func (s Security) kgo() (opts []kgo.Opt) {
	if s.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(s.TLS))
	}
	user, pass := s.User, s.Password
	switch s.Mechanism {
	case "PLAIN":
		opts = append(opts, kgo.SASL(plain.Auth{User: user, Pass: pass}.AsMechanism()))
	case "SCRAM-SHA-256":
		opts = append(opts, kgo.SASL(scram.Auth{User: user, Pass: pass}.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		opts = append(opts, kgo.SASL(scram.Auth{User: user, Pass: pass}.AsSha512Mechanism()))
	}
	return opts
}

// Send implements producer.
func (c *client) Send(topic string, partition int32, key, value []byte, headers []codecs.Header, done func(int64, error)) {
	r := &kgo.Record{Topic: topic, Partition: partition, Key: key, Value: value}
	if len(headers) > 0 {
		r.Headers = make([]kgo.RecordHeader, len(headers))
		for i, h := range headers {
			r.Headers[i] = kgo.RecordHeader{Key: h.Key, Value: h.Value}
		}
	}
	c.kgo.Produce(context.Background(), r, func(r *kgo.Record, err error) {
		if err == nil && r.Offset < 0 {
			err = errors.New("acknowledged without an offset")
		}
		done(r.Offset, err)
	})
}

// Start implements logs.
func (c *client) Start(ctx context.Context, topic string, partition int32) (int64, error) {
	return c.offset(ctx, topic, partition, -2)
}

// End implements logs.
func (c *client) End(ctx context.Context, topic string, partition int32) (int64, error) {
	return c.offset(ctx, topic, partition, -1)
}

func (c *client) offset(ctx context.Context, topic string, partition int32, at int64) (int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	t, p := kmsg.NewListOffsetsRequestTopic(), kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp = partition, at
	t.Topic, t.Partitions = topic, append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, c.kgo)
	if err == nil && (len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1) {
		err = errors.New("empty answer")
	}
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		return 0, fmt.Errorf("offsets of %s/%d: %w", topic, partition, err)
	}
	return resp.Topics[0].Partitions[0].Offset, nil
}

// Read implements logs. Transaction markers and other control records count as records, so that the end is always
// reached.
func (c *client) Read(ctx context.Context, topic string, partition int32, from, to int64, fn func(*codecs.Record) error) error {
	if from >= to {
		return nil
	}
	r, err := kgo.NewClient(append(kgoOptions(c.cfg),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().At(from)}}),
		kgo.KeepControlRecords(),
		kgo.FetchMaxPartitionBytes(8<<20),
		kgo.FetchIsolationLevel(kgo.ReadUncommitted()))...)
	if err != nil {
		return fmt.Errorf("read %s/%d: %w", topic, partition, err)
	}
	defer r.Close()
	rec := codecs.Record{Topic: topic, Partition: partition}
	for {
		fetches := r.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("read %s/%d from %d: %w", topic, partition, from, err)
		}
		for it := fetches.RecordIter(); !it.Done(); {
			k := it.Next()
			if k.Offset >= to {
				return nil
			}
			rec.Offset, rec.Time = k.Offset, k.Timestamp.UnixMilli()
			rec.Key, rec.Value, rec.Headers = k.Key, k.Value, rec.Headers[:0]
			if k.Attrs.IsControl() {
				rec.Key, rec.Value = nil, nil
			}
			for _, h := range k.Headers {
				rec.Headers = append(rec.Headers, codecs.Header{Key: h.Key, Value: h.Value})
			}
			if err := fn(&rec); err != nil {
				return err
			}
			if k.Offset == to-1 {
				return nil
			}
		}
	}
}

// topics describes topics; one that is missing or has a partition without a leader is an error.
func (c *client) topics(ctx context.Context, names ...string) (kadm.TopicDetails, error) {
	all, err := kadm.NewClient(c.kgo).ListTopics(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	for _, name := range names {
		t, ok := all[name]
		if !ok || t.Err != nil {
			return nil, fmt.Errorf("topic %s: %w", name, errors.Join(errMissing, t.Err))
		}
		for _, p := range t.Partitions {
			if p.Err != nil || p.Leader < 0 {
				return nil, fmt.Errorf("topic %s, partition %d: no leader: %w", name, p.Partition, errors.Join(errMissing, p.Err))
			}
		}
	}
	return all, nil
}

// checkCompacted refuses a topic that forgets keys, and returns the shortest delete.retention.ms; 0 when the settings
// cannot be read.
func (c *client) checkCompacted(ctx context.Context, names ...string) (time.Duration, error) {
	all, err := kadm.NewClient(c.kgo).DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return 0, fmt.Errorf("describe topics: %w", err)
	}
	least := time.Duration(0)
	for _, topic := range all {
		if topic.Err != nil {
			c.cfg.Logger.Warn("settings of a topic cannot be checked", "topic", topic.Name, "error", topic.Err)
			continue
		}
		for _, s := range topic.Configs {
			switch s.Key {
			case "cleanup.policy":
				if s.MaybeValue() != "compact" && !c.cfg.off.anyTopic {
					return 0, fmt.Errorf("topic %s has cleanup.policy %s: it must be compact", topic.Name, s.MaybeValue())
				}
			case "delete.retention.ms":
				if ms, err := strconv.ParseInt(s.MaybeValue(), 10, 64); err == nil && (least == 0 || time.Duration(ms)*time.Millisecond < least) {
					least = time.Duration(ms) * time.Millisecond
				}
			}
		}
	}
	return least, nil
}

// committed returns the group's offsets; nothing when they cannot be read, as they decide nothing.
func (c *client) committed(ctx context.Context, group, topic string) map[int32]int64 {
	resp, err := kadm.NewClient(c.kgo).FetchOffsetsForTopics(ctx, group, topic)
	if err != nil {
		return nil
	}
	at := map[int32]int64{}
	resp.Each(func(o kadm.OffsetResponse) {
		if o.Err == nil && o.At >= 0 {
			at[o.Partition] = o.At
		}
	})
	return at
}

var errMissing = errors.New("not there yet")

func (c *client) close() { c.kgo.Close() }
