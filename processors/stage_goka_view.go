package processors

import (
	"context"
	"errors"
	"fmt"

	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"
	"github.com/syndtr/goleveldb/leveldb"
	ldb "github.com/syndtr/goleveldb/leveldb/storage"
)

// StageView reads the table of a goka stage.
type StageView struct {
	view  *goka.View
	close func() error
}

// NewStageView makes a view of the table of a stage; its copy is in memory. Of cfg, Stage, Table, Security and Timing
// are used.
func NewStageView(ctx context.Context, cfg StageGroupConfig) (*StageView, error) {
	cfg = cfg.WithDefaults()
	if cfg.Callback == nil {
		cfg.Callback = func(Context, any) {}
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := cfg.Stage.Topology.Stages[cfg.Stage.Stage]
	if !s.Table {
		return nil, fmt.Errorf("stage %s has no table to view", cfg.Stage.Stage)
	}
	client, err := newViewTopics(ctx, cfg, tableOf(s.Group))
	if err != nil {
		return nil, err
	}
	tables := &tableConsumer{config: cfg.sarama()}
	v, err := goka.NewView(brokersOf(cfg.Stage), goka.GroupTable(goka.Group(s.Group)), cfg.Table,
		goka.WithViewLogger(gokaLog{cfg.Stage.Log}), goka.WithViewClientID(cfg.Stage.ClientID+"-view"), goka.WithViewHasher(Hasher),
		goka.WithViewAutoReconnect(),
		goka.WithViewStorageBuilder(memoryStore),
		goka.WithViewTopicManagerBuilder(func([]string) (goka.TopicManager, error) { return client, nil }),
		goka.WithViewConsumerSaramaBuilder(tables.build))
	if err != nil {
		client.close()
		return nil, fmt.Errorf("view of stage %s: %w", cfg.Stage.Stage, errors.Join(err, tables.close()))
	}
	return &StageView{v, func() error {
		client.close()
		return tables.close()
	}}, nil
}

// Run follows the table until ctx ends. It can be run once.
func (v *StageView) Run(ctx context.Context) error {
	return errors.Join(v.view.Run(ctx), v.close())
}

// Recovered says whether the view has read the table to the end it had at the start; before that it knows a part.
func (v *StageView) Recovered() bool { return v.view.Recovered() }

// Get returns the value of a key, nil if there is none.
func (v *StageView) Get(key string) (any, error) { return v.view.Get(key) }

// Each calls fn with every key and value.
func (v *StageView) Each(fn func(key string, value any) error) error {
	it, err := v.view.Iterator()
	if err != nil {
		return fmt.Errorf("iterate over %s: %w", v.view.Topic(), err)
	}
	defer it.Release()
	for it.Next() {
		value, err := it.Value()
		if err != nil {
			return fmt.Errorf("value of %s in %s: %w", it.Key(), v.view.Topic(), err)
		}
		if err := fn(it.Key(), value); err != nil {
			return err
		}
	}
	return nil
}

// memoryStore is a store in memory. goka's own one sorts all keys for each new one.
func memoryStore(topic string, partition int32) (storage.Storage, error) {
	db, err := leveldb.Open(ldb.NewMemStorage(), nil)
	if err != nil {
		return nil, fmt.Errorf("store of %s/%d: %w", topic, partition, err)
	}
	return storage.New(db)
}
