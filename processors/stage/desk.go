package stage

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/markers"
	"github.com/quiesce/quiesce/topology"
)

// Desk is what a stage needs whatever client reads for it: it decides on records, and it sends what follows to the
// deployment. Run has one inside; package processors builds the goka variant on it. Users need neither.
type Desk struct {
	cfg     Config
	group   string
	control string // topic
	encoder codecs.Encoder
	wrap    *wrapper
	facts   facts
	client  *kgo.Client
	admin   *kadm.Client
	status  *status
	ctx     context.Context // of sends; ends at a crash, and when draining takes too long
	abort   context.CancelFunc
	reading chan struct{} // closed: the reader of the status topic has returned

	mu    sync.Mutex
	books map[*Book]bool
}

// OpenDesk connects. more are options of the client, before those of the configuration.
func OpenDesk(ctx context.Context, cfg Config, more ...kgo.Opt) (d *Desk, err error) {
	d = &Desk{cfg: cfg, group: cfg.Topology.Stages[cfg.Stage].Group, control: codecs.Topic(cfg.Prefix, codecs.TopicControl),
		encoder: codecs.Encoder{Source: codecs.Source(cfg.Prefix, cfg.ClientID)}, books: map[*Book]bool{}, reading: make(chan struct{})}
	opts := append([]kgo.Opt{
		kgo.SeedBrokers(strings.Split(cfg.Bootstrap, ",")...),
		kgo.ClientID(cfg.ClientID),
		kgo.RecordPartitioner(partitioner()),
		kgo.ProducerLinger(0),
		kgo.ProducerBatchMaxBytesFn(func(topic string) int32 { return int32(max(d.facts.size(topic), 512)) }),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.AllowIdempotentProduceCancellation(), // sends are cancelled only when the client is thrown away
	}, more...)
	if d.client, err = kgo.NewClient(append(opts, cfg.Options...)...); err != nil {
		return nil, permanent{fmt.Errorf("client: %w", err)}
	}
	d.admin = kadm.NewClient(d.client)
	if d.facts, err = readFacts(ctx, d.admin, cfg); err != nil {
		d.client.CloseAllowingRebalance()
		return nil, err
	}
	d.wrap = newWrapper(cfg, d.facts)
	if d.status, err = followStatus(d); err != nil {
		d.client.CloseAllowingRebalance()
		return nil, err
	}
	d.ctx, d.abort = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(d.reading)
		d.status.run(d.ctx)
	}()
	return d, nil
}

// Abort gives up what is not sent yet.
func (d *Desk) Abort() { d.abort() }

// Close disconnects. What was sent and is not acked is given up.
func (d *Desk) Close() {
	d.abort()
	d.client.CloseAllowingRebalance()
	<-d.reading
	d.status.close()
}

// Counts are the partition counts of the topology's topics: the declared ones, else those of the topics.
func (d *Desk) Counts() topology.Partitions { return d.facts.counts }

// MaxBytes is the largest record (codecs.Record.Size) that a topic of the stage takes.
func (d *Desk) MaxBytes(topic string) int { return d.facts.size(topic) }

// Admin is the client for looking things up.
func (d *Desk) Admin() *kadm.Client { return d.admin }

// Write sends a record; promise is called with its offset when it is acked, or with what went wrong.
func (d *Desk) Write(rec *codecs.Record, promise func(int64, error)) {
	d.client.Produce(d.ctx, toKgo(rec), func(k *kgo.Record, err error) { promise(k.Offset, err) })
}

// DeadLetter makes the dead letter of a record, small enough for its topic.
func (d *Desk) DeadLetter(rec *codecs.Record, reason string) codecs.Record {
	topic := codecs.Topic(d.cfg.Prefix, codecs.TopicDeadLetter)
	return codecs.NewDeadLetterWithin(d.facts.size(topic), topic, rec, d.facts.ids[rec.Topic], clip(reason))
}

func (d *Desk) unitConfig(p partition) markers.Config {
	return markers.Config{
		Unit:       &codecs.Unit{Stage: d.cfg.Stage, Topic: p.topic, Partition: uint32(p.id)},
		Topologies: append([]*topology.Topology{d.cfg.Topology}, d.cfg.Older...),
		Counts:     d.facts.counts,
	}
}

// partition names one partition of an input.
type partition struct {
	topic string
	id    int32
}
