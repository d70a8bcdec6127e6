package processors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/stage"
)

// tableOf is the table topic of a goka group.
func tableOf(group string) string { return group + "-table" }

// stageTopics is goka's topic manager: it creates nothing and answers from the brokers.
type stageTopics struct {
	verifier
	ctx   context.Context
	admin *kadm.Client
	close func()
}

var _ goka.TopicManager = (*stageTopics)(nil)

// newStageTopics looks up the inputs and the table, which must have the same number of partitions.
func newStageTopics(ctx context.Context, cfg StageGroupConfig, desk *stage.Desk) (*stageTopics, error) {
	s := cfg.Stage.Topology.Stages[cfg.Stage.Stage]
	names := slices.Clone(s.In)
	if s.Table {
		names = append(names, tableOf(s.Group))
	}
	return lookTopics(ctx, desk.Admin(), names, func() {})
}

// newViewTopics looks up a table, with a client of its own.
func newViewTopics(ctx context.Context, cfg StageGroupConfig, table string) (*stageTopics, error) {
	opts := append([]kgo.Opt{kgo.SeedBrokers(strings.Split(cfg.Stage.Bootstrap, ",")...), kgo.ClientID(cfg.Stage.ClientID + "-view")},
		cfg.Security.kgo()...)
	c, err := kgo.NewClient(append(opts, cfg.Stage.Options...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	t, err := lookTopics(ctx, kadm.NewClient(c), []string{table}, c.Close)
	if err != nil {
		c.Close()
		return nil, err
	}
	return t, nil
}

func lookTopics(ctx context.Context, admin *kadm.Client, names []string, closing func()) (*stageTopics, error) {
	details, err := admin.ListTopics(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	t := &stageTopics{verifier: verifier{map[string]int32{}}, ctx: context.WithoutCancel(ctx), admin: admin, close: closing}
	for _, name := range names {
		d, ok := details[name]
		if !ok || d.Err != nil || len(d.Partitions) == 0 {
			return nil, fmt.Errorf("topic %s: %w", name, errors.Join(errMissing, d.Err))
		}
		t.partitions[name] = int32(len(d.Partitions))
		if n := t.partitions[names[0]]; t.partitions[name] != n {
			return nil, fmt.Errorf("topic %s has %d partitions, %s has %d: they must be equal", name, t.partitions[name], names[0], n)
		}
	}
	return t, nil
}

// GetOffset implements goka.TopicManager.
func (t *stageTopics) GetOffset(topic string, partition int32, at int64) (int64, error) {
	list := t.admin.ListEndOffsets
	if at == sarama.OffsetOldest {
		list = t.admin.ListStartOffsets
	}
	offsets, err := list(t.ctx, topic)
	if err == nil {
		err = offsets.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("offset of %s/%d: %w", topic, partition, err)
	}
	o, ok := offsets.Lookup(topic, partition)
	if !ok {
		return 0, fmt.Errorf("offset of %s/%d: %w", topic, partition, errMissing)
	}
	return o.Offset, nil
}

// Close implements goka.TopicManager. goka closes one that it goes on using, so this does nothing.
func (t *stageTopics) Close() error { return nil }

// tableConsumer makes goka's consumer of tables, which goka does not close.
type tableConsumer struct {
	config *sarama.Config
	made   []sarama.Consumer
}

func (c *tableConsumer) build(brokers []string, clientID string) (sarama.Consumer, error) {
	config := *c.config
	config.ClientID = clientID
	consumer, err := sarama.NewConsumer(brokers, &config)
	if err != nil {
		return nil, fmt.Errorf("consumer of tables: %w", err)
	}
	c.made = append(c.made, consumer)
	return consumer, nil
}

func (c *tableConsumer) close() error {
	var errs []error
	for _, consumer := range c.made {
		errs = append(errs, consumer.Close())
	}
	return errors.Join(errs...)
}

// tableProducer is goka's producer: it writes the table and nothing else.
type tableProducer struct {
	desk   *stage.Desk
	topics *stageTopics
}

// Emit implements goka.Producer.
func (p *tableProducer) Emit(topic, key string, value []byte) *goka.Promise {
	return p.EmitWithHeaders(topic, key, value, nil)
}

// EmitWithHeaders implements goka.Producer.
func (p *tableProducer) EmitWithHeaders(topic, key string, value []byte, _ goka.Headers) *goka.Promise {
	promise, finish := goka.NewPromiseWithFinisher()
	rec := codecs.Record{Topic: topic, Partition: codecs.Partition([]byte(key), p.topics.partitions[topic]), Key: []byte(key), Value: value}
	p.desk.Write(&rec, func(offset int64, err error) {
		finish(&sarama.ProducerMessage{Topic: topic, Partition: rec.Partition, Offset: offset}, err)
	})
	return promise
}

// Close implements goka.Producer. The client belongs to the desk.
func (p *tableProducer) Close() error { return nil }
