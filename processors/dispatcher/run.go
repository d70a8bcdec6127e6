package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/queue"
)

// maxOrders is how many orders are taken at once, and committed together.
const maxOrders = 100

// dispatcher is one instance.
type dispatcher struct {
	cfg      Config
	cl       *kgo.Client
	topicID  codecs.TopicID
	releaser *Releaser
}

// sessionTimeout is how long the orders of a dispatcher that died without a goodbye wait.
const sessionTimeout = 10 * time.Second

// Run carries out orders until ctx is done.
func Run(ctx context.Context, cfg Config) error {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return err
	}
	topic := codecs.Topic(cfg.Prefix, codecs.TopicDispatch)
	seeds := kgo.SeedBrokers(strings.Split(cfg.Bootstrap, ",")...)
	cl, err := kgo.NewClient(append([]kgo.Opt{seeds, kgo.ConsumerGroup(codecs.Group(cfg.Prefix, codecs.GroupDispatcher)),
		kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.SessionTimeout(sessionTimeout), kgo.RebalanceTimeout(5 * time.Minute), kgo.ClientID(cfg.ClientID), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.MaxBufferedRecords(50_000)}, cfg.Options...)...)
	if err != nil {
		return fmt.Errorf("dispatcher: %w", err)
	}
	defer cl.CloseAllowingRebalance()
	details, err := kadm.NewClient(cl).ListTopics(ctx, topic)
	if err == nil {
		err = details.Error()
	}
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("dispatcher: topic %s: %w", topic, err)
	}
	reader, err := kgo.NewClient(append([]kgo.Opt{seeds, kgo.ClientID(cfg.ClientID), kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0), kgo.RequiredAcks(kgo.AllISRAcks())}, cfg.Options...)...)
	if err != nil {
		return fmt.Errorf("dispatcher: %w", err)
	}
	defer reader.Close()
	d := &dispatcher{cfg: cfg, cl: cl, topicID: codecs.TopicID(details[topic].ID), releaser: &Releaser{
		Manifest: newChunks(reader, codecs.Topic(cfg.Prefix, codecs.TopicManifest), codecs.Source(cfg.Prefix, cfg.ClientID), cfg.CacheBytes, cfg.Counters),
		Producer: queue.NewProducer(cl, cfg.Prefix, codecs.Source(cfg.Prefix, cfg.ClientID), nil),
		Counters: cfg.Counters, Log: cfg.Log}}
	for ctx.Err() == nil {
		d.poll(ctx)
	}
	return nil
}

// poll takes some orders, carries them out and commits them. Partitions are not handed over in between.
func (d *dispatcher) poll(ctx context.Context) {
	fetches := d.cl.PollRecords(ctx, maxOrders)
	defer d.cl.AllowRebalance()
	fetches.EachError(func(topic string, p int32, err error) {
		if ctx.Err() == nil {
			d.cfg.Log.Warn("dispatch fetch failed", "topic", topic, "partition", p, "error", err)
		}
	})
	recs := fetches.Records()
	for _, rec := range recs {
		if !d.order(ctx, rec) {
			return // the process ends: the next one carries it out
		}
	}
	if len(recs) > 0 {
		if err := d.cl.CommitRecords(ctx, recs...); err != nil && ctx.Err() == nil {
			d.cfg.Log.Warn("orders not committed; they may be carried out twice", "error", err)
		}
	}
}

// order carries out one order, however often that takes; false when ctx is done before.
func (d *dispatcher) order(ctx context.Context, rec *kgo.Record) bool {
	in := fromKgo(rec)
	var ev codecs.Event
	err := codecs.Decode(&in, &ev)
	o, ok := ev.Data.(*codecs.Dispatch)
	if err == nil && !ok {
		err = fmt.Errorf("%w: %s is no order", codecs.ErrUnknownType, ev.Type)
	}
	start := time.Now()
	for wait := 10 * time.Millisecond; err == nil; wait = min(2*wait, time.Second) {
		if err = d.releaser.Release(ctx, ev.Key, o); err == nil {
			d.cfg.Counters.Orders.Add(1)
			return true
		}
		if errors.Is(err, kerr.UnknownTopicOrPartition) && time.Since(start) > d.cfg.QueueWait || errors.Is(err, errOrder) {
			break // no use in another try
		}
		d.cfg.Log.Warn("order not carried out; tried again", "batch_id", ev.Key, "run", o.Run, "lo", o.Lo, "hi", o.Hi, "error", err)
		if err = sleep(ctx, wait); err != nil {
			return false
		}
	}
	return d.deadLetter(ctx, &in, err)
}

// deadLetter puts an order away that cannot be carried out; false when ctx is done before.
func (d *dispatcher) deadLetter(ctx context.Context, in *codecs.Record, reason error) bool {
	d.cfg.Log.Error("order put away", "topic", in.Topic, "partition", in.Partition, "offset", in.Offset, "error", reason)
	d.cfg.Counters.DeadLetters.Add(1)
	letter := codecs.NewDeadLetter(codecs.Topic(d.cfg.Prefix, codecs.TopicDeadLetter), in, d.topicID, reason.Error())
	for {
		err := d.cl.ProduceSync(ctx, toKgo(&letter)).FirstErr()
		if err == nil {
			return true
		}
		d.cfg.Log.Error("dead letter not written; tried again", "topic", in.Topic, "partition", in.Partition, "offset", in.Offset, "error", err)
		if sleep(ctx, time.Second) != nil {
			return false
		}
	}
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
