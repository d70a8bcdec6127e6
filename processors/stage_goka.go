package processors

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"

	"github.com/quiesce/quiesce/processors/stage"
	"github.com/quiesce/quiesce/topology"
)

// Names of goka's, so that a callback can be written without importing it.
type (
	// Context is what a callback gets.
	Context = goka.Context
	// Codec turns values into bytes and back.
	Codec = goka.Codec
)

// StageGroupConfig says what a StageGroup runs. Stage (topology, stage, bootstrap) and Callback are required.
type StageGroupConfig struct {
	// Stage is what every stage has. The topology declares it with client: goka. Handler is not used; Untagged and Hook
	// mean the same as there.
	Stage stage.Config
	// Callback is called for each data record, with the value that the input's codec gives. See StageGroup.
	Callback func(ctx Context, value any)
	// Inputs and Outputs are the codecs of the topics. Default: bytes.
	Inputs, Outputs map[string]Codec
	// Table is the codec of the table; required if the topology declares one, refused otherwise.
	Table Codec
	// DataDir keeps the local copy of the table. Default as in Config.
	DataDir string
	// InstanceID is the static group member id. Default "": dynamic membership.
	InstanceID string
	// Security is how to talk to the brokers. Default: plaintext.
	Security Security
	// Timing bounds the waits: Session, Backoff and Drain are used.
	Timing Timing
}

// WithDefaults returns c with every unset field at its documented default.
func (c StageGroupConfig) WithDefaults() StageGroupConfig {
	c.Stage = c.Stage.WithDefaults()
	if c.DataDir == "" {
		c.DataDir = filepath.Join(stateDir(), "quiesce")
	}
	c.Timing = c.Timing.WithDefaults()
	return c
}

// Validate reports everything that cannot work.
func (c StageGroupConfig) Validate() error {
	c = c.WithDefaults()
	if err := c.Stage.ValidateFor(topology.ClientGoka); err != nil {
		return err
	}
	var errs []error
	s := c.Stage.Topology.Stages[c.Stage.Stage]
	if c.Callback == nil {
		errs = append(errs, errors.New("no callback"))
	}
	if s.Table != (c.Table != nil) {
		errs = append(errs, fmt.Errorf("the topology says table: %v, a table codec is given: %v", s.Table, c.Table != nil))
	}
	for topic := range c.Inputs {
		if !slices.Contains(s.In, topic) {
			errs = append(errs, fmt.Errorf("codec for %q, which is not an input", topic))
		}
	}
	for topic := range c.Outputs {
		if !slices.Contains(s.Out, topic) {
			errs = append(errs, fmt.Errorf("codec for %q, which is not an output", topic))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stage %s: %w", c.Stage.Stage, err)
	}
	return nil
}

// StageGroup runs a goka callback as a stage: a goka processor group, with or without a table, defined from the topology.
//
// The callback has goka's context, but what it sets and emits takes effect only when it returns: an attempt that fails
// (Fail, a panic) leaves nothing behind and is repeated in place as any stage's is. Fail(stage.Skip) filters the record.
// It cannot loop back, defer its commit, or set another key than that of its record.
//
// goka's own marks prove little: a later message may be marked before an earlier one is durable. So the group, the
// producer and the topic manager are this package's, and cannot be given. A record is accounted when its table write
// and everything it sent are acked, in the order of its partition; END waits its turn like any other record. The local
// copy may be ahead of what is accounted after a crash, so a record may be folded twice: fold into sets, not counters.
type StageGroup struct {
	cfg StageGroupConfig
	log *slog.Logger
}

// NewStageGroup checks the configuration. Nothing is connected before Run.
func NewStageGroup(cfg StageGroupConfig) (*StageGroup, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &StageGroup{cfg: cfg, log: cfg.Stage.Log.With("stage", cfg.Stage.Stage)}, nil
}

// Run runs the group until ctx ends, then drains it. Whatever goes wrong before is reported, and the group is built
// again, with backoff.
func (g *StageGroup) Run(ctx context.Context) error {
	wait := newBackoff(g.cfg.Timing)
	for {
		began := time.Now()
		err := g.live(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > time.Minute {
			wait.Reset()
		}
		d := wait.NextBackOff()
		g.log.Error("group failed, building it again", "error", err, "seconds", d.Seconds())
		if !sleep(ctx, d) {
			return nil
		}
	}
}

// live is one life of the goka processor.
func (g *StageGroup) live(ctx context.Context) (err error) {
	cfg := g.cfg
	cfg.Stage.Options = append(slices.Clone(cfg.Stage.Options), cfg.Security.kgo()...)
	desk, err := stage.OpenDesk(ctx, cfg.Stage)
	if err != nil {
		return err
	}
	defer desk.Close()
	names, err := newStageTopics(ctx, cfg, desk)
	if err != nil {
		return err
	}
	life := &stageLife{cfg: cfg, log: g.log, desk: desk, topics: names, tables: &tableConsumer{config: cfg.sarama()}}
	defer func() { err = errors.Join(err, life.tables.close()) }()
	p, err := goka.NewProcessor(brokersOf(cfg.Stage), life.graph(), life.options()...)
	if err != nil {
		return fmt.Errorf("goka: %w", err)
	}
	return p.Run(ctx)
}

func brokersOf(cfg stage.Config) []string { return strings.Split(cfg.Bootstrap, ",") }

// stageLife is what one life of the goka processor shares.
type stageLife struct {
	cfg    StageGroupConfig
	log    *slog.Logger
	desk   *stage.Desk
	topics *stageTopics
	tables *tableConsumer

	current sessionRef
}

func (l *stageLife) declared() topology.Stage { return l.cfg.Stage.Topology.Stages[l.cfg.Stage.Stage] }

// graph is the stage as goka sees it. It emits nothing through goka but the table, and all values are bytes to it: what
// cannot be coded is the record's failure, not the processor's.
func (l *stageLife) graph() *goka.GroupGraph {
	s := l.declared()
	var edges []goka.Edge
	for _, topic := range s.In {
		edges = append(edges, goka.Input(goka.Stream(topic), raw{}, l.callback))
	}
	if s.Table {
		edges = append(edges, goka.Persist(raw{}))
	}
	return goka.DefineGroup(goka.Group(s.Group), edges...)
}

func (l *stageLife) options() []goka.ProcessorOption {
	sc := l.cfg.sarama()
	return []goka.ProcessorOption{
		goka.WithLogger(gokaLog{l.log}),
		goka.WithClientID(l.cfg.Stage.ClientID),
		goka.WithHasher(Hasher),
		goka.WithNilHandling(goka.NilProcess),
		goka.WithPartitionChannelSize(256),
		goka.WithTopicManagerBuilder(func([]string) (goka.TopicManager, error) { return l.topics, nil }),
		goka.WithProducerBuilder(func([]string, string, func() hash.Hash32) (goka.Producer, error) {
			return &tableProducer{l.desk, l.topics}, nil
		}),
		goka.WithConsumerSaramaBuilder(l.tables.build),
		goka.WithStorageBuilder(storage.DefaultBuilder(filepath.Join(l.cfg.DataDir, "stages", l.declared().Group))),
		goka.WithConsumerGroupBuilder(func(brokers []string, name, _ string) (sarama.ConsumerGroup, error) {
			cg, err := newConsumerGroup(brokers, name, sc)
			if err != nil {
				return nil, err
			}
			return &stageConsumers{cg, l}, nil
		}),
	}
}

func (c StageGroupConfig) sarama() *sarama.Config {
	sc := sarama.NewConfig()
	sc.Version = sarama.V2_8_0_0
	sc.ClientID = c.Stage.ClientID
	sc.Metadata.Full = false
	sc.Consumer.Return.Errors = true
	sc.Consumer.Offsets.Initial = sarama.OffsetOldest
	sc.Consumer.Offsets.AutoCommit.Interval = c.Stage.Flow.CommitEvery
	sc.Consumer.Group.ResetInvalidOffsets = false
	sc.Consumer.Group.Session.Timeout = c.Timing.Session
	sc.Consumer.Group.Heartbeat.Interval = min(c.Timing.Session/3, 3*time.Second)
	sc.Consumer.Group.InstanceId = c.InstanceID
	sc.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategySticky()}
	sc.Consumer.MaxProcessingTime = 10 * time.Second
	sc.Consumer.MaxWaitTime = 250 * time.Millisecond
	c.Security.apply(sc)
	return sc
}
