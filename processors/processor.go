package processors

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"

	"github.com/quiesce/quiesce/codecs"
)

// Processor runs one machine as a goka processor group.
type Processor struct {
	cfg    Config
	log    *slog.Logger
	m      *metrics
	faults *faults

	// Of one life of the goka processor.
	env     *env
	client  *client
	tableID codecs.TopicID

	mu      sync.Mutex
	session *session
	last    error // why it does not run
}

// New checks the configuration. Nothing is connected before Run.
func New(cfg Config) (*Processor, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("processor: %w", err)
	}
	p := &Processor{cfg: cfg, m: newMetrics(cfg.Registerer, cfg.Machine.Role()), faults: newFaults(), last: errors.New("not started")}
	p.log = cfg.Logger.With("group", codecs.Group(cfg.Prefix, cfg.Machine.Role()))
	if err := registerGauges(cfg.Registerer, newGauges(p)); err != nil {
		return nil, fmt.Errorf("processor: metrics: %w", err)
	}
	return p, nil
}

// Run runs the processor until ctx ends; then it drains, within Timing.Drain, and returns nil. Whatever goes wrong
// before is reported, and the processor is built again, with backoff: it never gives up. Not for concurrent use.
func (p *Processor) Run(ctx context.Context) error {
	wait := p.backoff()
	for {
		began := time.Now()
		err := p.live(ctx)
		if ctx.Err() != nil {
			p.setLast(errStopped)
			return nil
		}
		if time.Since(began) > time.Minute {
			wait.Reset()
		}
		d := wait.NextBackOff()
		if err == nil {
			err = errors.New("the processor returned")
		}
		p.setLast(err)
		if p.cfg.off.giveUp {
			return err
		}
		p.m.restarts.Inc()
		p.log.Error("processor failed, building it again", "error", err, "seconds", d.Seconds())
		if !sleep(ctx, d) {
			return nil
		}
	}
}

// live is one life of the goka processor.
func (p *Processor) live(ctx context.Context) error {
	c, err := newClient(p.cfg)
	if err != nil {
		return err
	}
	defer c.close()
	counts, err := p.prepare(ctx, c)
	if err != nil {
		return err
	}
	sc := p.saramaConfig()
	graph := goka.DefineGroup(goka.Group(p.env.group), goka.Input(goka.Stream(p.env.input), raw{}, p.callback), goka.Persist(raw{}))
	g, err := goka.NewProcessor(p.cfg.Bootstrap, graph,
		goka.WithLogger(gokaLog{p.log}),
		goka.WithClientID(p.cfg.ClientID),
		goka.WithHasher(Hasher),
		goka.WithNilHandling(goka.NilProcess),
		goka.WithPartitionChannelSize(1024),
		goka.WithTopicManagerBuilder(func([]string) (goka.TopicManager, error) { return verifier{counts}, nil }),
		goka.WithProducerBuilder(func([]string, string, func() hash.Hash32) (goka.Producer, error) { return mute{}, nil }),
		goka.WithConsumerSaramaBuilder(func([]string, string) (sarama.Consumer, error) { return deaf{}, nil }),
		goka.WithStorageBuilder(func(_ string, partition int32) (storage.Storage, error) {
			return &table{s: p.current(), id: partition}, nil
		}),
		goka.WithConsumerGroupBuilder(func(brokers []string, name, _ string) (sarama.ConsumerGroup, error) {
			cg, err := newConsumerGroup(brokers, name, sc)
			if err != nil {
				return nil, err
			}
			return &group{cg, p}, nil
		}))
	if err != nil {
		return fmt.Errorf("goka: %w", err)
	}
	return g.Run(ctx)
}

// prepare finds the topics and makes what the partitions share.
func (p *Processor) prepare(ctx context.Context, c *client) (map[string]int32, error) {
	m, prefix := p.cfg.Machine, p.cfg.Prefix
	e := &env{
		machine: m, prefix: prefix, group: codecs.Group(prefix, m.Role()), input: codecs.Topic(prefix, m.Input()), table: codecs.Table(prefix, m.Role()),
		out: c, logs: c, log: p.log, m: p.m, timing: p.cfg.Timing, now: p.cfg.Now, hook: p.cfg.Hook, faults: p.faults, off: p.cfg.off,
		hasStatus: m.Role() == codecs.GroupController, faultOf: func(_ int32, err error) { p.setLast(err) },
	}
	e.source = codecs.Source(prefix, e.group)
	host, _ := os.Hostname()
	e.owner = host + "/" + strconv.Itoa(os.Getpid()) + "/" + p.cfg.InstanceID
	names := []string{e.input, e.table}
	if e.hasStatus {
		names = append(names, codecs.Topic(prefix, codecs.TopicStatus))
	}
	topics, err := c.topics(ctx, names...)
	if err != nil {
		return nil, err
	}
	counts := map[string]int32{}
	for _, name := range names {
		counts[name] = int32(len(topics[name].Partitions))
		if counts[name] != counts[e.input] {
			return nil, fmt.Errorf("topic %s has %d partitions, %s has %d: they must be equal", name, counts[name], e.input, counts[e.input])
		}
	}
	retention, err := c.checkCompacted(ctx, names[1:]...)
	if err != nil {
		return nil, err
	}
	if retention > 0 {
		e.timing.DeleteRetention = min(e.timing.DeleteRetention, retention)
	}
	e.topicID, e.partitions = codecs.TopicID(topics[e.input].ID), counts[e.input]
	e.cacheBytes = p.cfg.CacheBytes / int(max(e.partitions, 1))
	p.client = c
	p.env, p.tableID = e, codecs.TopicID(topics[e.table].ID)
	return counts, nil
}

func (p *Processor) saramaConfig() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.V2_8_0_0
	c.ClientID = p.cfg.ClientID
	c.Metadata.Full = false
	c.Consumer.Return.Errors = true
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Group.ResetInvalidOffsets = false
	c.Consumer.Group.Session.Timeout = p.cfg.Timing.Session
	c.Consumer.Group.Heartbeat.Interval = min(p.cfg.Timing.Session/3, 3*time.Second)
	c.Consumer.Group.InstanceId = p.cfg.InstanceID
	c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategySticky()}
	c.Consumer.MaxProcessingTime = 10 * time.Second // a full cut may block
	c.Consumer.MaxWaitTime = 250 * time.Millisecond
	c.ChannelBufferSize = 1024
	c.Consumer.Fetch.Default = 4 << 20
	p.saramaSecurity(c)
	return c
}

// callback takes messages that come through goka's loop. goka keeps headers in a map: their order is lost, and of
// repeated names the last one is left.
func (p *Processor) callback(ctx goka.Context, value any) {
	s := p.current()
	if s == nil {
		ctx.Fail(errStopped)
		return
	}
	rec := codecs.Record{Topic: string(ctx.Topic()), Partition: ctx.Partition(), Offset: ctx.Offset(), Time: ctx.Timestamp().UnixMilli(), Key: []byte(ctx.Key())}
	rec.Value, _ = value.([]byte)
	headers := ctx.Headers()
	names := make([]string, 0, len(headers))
	for k := range headers {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		rec.Headers = append(rec.Headers, codecs.Header{Key: k, Value: headers[k]})
	}
	if part := s.parts[rec.Partition]; part != nil {
		_ = part.handle(&rec) // reported by the part
	}
}

func (p *Processor) current() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session
}

func (p *Processor) setSession(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.session = s
}

func (p *Processor) setLast(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = err
}

// gokaLog hands goka's few messages to slog.
type gokaLog struct{ log *slog.Logger }

func (l gokaLog) Print(a ...any)            { l.log.Debug(fmt.Sprint(a...), "from", "goka") }
func (l gokaLog) Println(a ...any)          { l.log.Debug(fmt.Sprint(a...), "from", "goka") }
func (l gokaLog) Printf(f string, a ...any) { l.log.Debug(fmt.Sprintf(f, a...), "from", "goka") }
