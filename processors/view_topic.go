package processors

import (
	"fmt"

	"github.com/syndtr/goleveldb/leveldb/util"

	"github.com/quiesce/quiesce/codecs"
)

// TopicView is a local copy of a compacted topic of a deployment: the last value of each key. Its life and its refusals
// are those of a View.
type TopicView struct{ follower }

// NewTopicView follows the topic of a logical name, for example codecs.TopicOutcomes.
func NewTopicView(cfg ViewConfig, name string) (*TopicView, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("view of %s: %w", name, err)
	}
	topic := codecs.Topic(cfg.Prefix, name)
	return &TopicView{follower{cfg: cfg, topic: topic, log: cfg.Logger.With("topic", topic), hub: newHub()}}, nil
}

// Get returns the value of a key; nil = none.
func (v *TopicView) Get(key string) ([]byte, error) {
	parts, done, err := v.read()
	if err != nil {
		return nil, err
	}
	defer done()
	return parts[codecs.Partition([]byte(key), int32(len(parts)))].get(key)
}

// Range calls each with the keys that start with prefix, from a key on, in key order, until each returns false. All of
// them must live on the partition of prefix, as the keys of one id do. The values are valid during the call only.
func (v *TopicView) Range(prefix, from string, each func(key string, value []byte) bool) error {
	parts, done, err := v.read()
	if err != nil {
		return err
	}
	defer done()
	p := parts[codecs.Partition([]byte(prefix), int32(len(parts)))]
	r := util.BytesPrefix([]byte(prefix))
	if from > prefix {
		r.Start = []byte(from)
	}
	it := p.disk.db.NewIterator(r, nil)
	defer it.Release()
	for it.Next() {
		if !each(string(it.Key()), it.Value()) {
			return nil
		}
	}
	return p.check(it.Error())
}

// Back calls each with the keys that start with prefix, from a key on downwards, until each returns false. The rest is
// as with Range.
func (v *TopicView) Back(prefix, from string, each func(key string, value []byte) bool) error {
	parts, done, err := v.read()
	if err != nil {
		return err
	}
	defer done()
	p := parts[codecs.Partition([]byte(prefix), int32(len(parts)))]
	r := util.BytesPrefix([]byte(prefix))
	r.Limit = append([]byte(from), 0) // the first key behind from
	it := p.disk.db.NewIterator(r, nil)
	defer it.Release()
	for ok := it.Last(); ok; ok = it.Prev() {
		if !each(string(it.Key()), it.Value()) {
			return nil
		}
	}
	return p.check(it.Error())
}
