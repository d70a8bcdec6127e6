package repair

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/replay"
)

// Config says which deployment to repair.
type Config struct {
	// Client are the options of the Kafka client: seed brokers, TLS, SASL. Required.
	Client []kgo.Opt
	// Prefix is the deployment. Default codecs.DefaultPrefix.
	Prefix string
}

// WithDefaults returns the configuration with absent fields filled in.
func (c Config) WithDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = codecs.DefaultPrefix
	}
	return c
}

// Validate reports what is missing.
func (c Config) Validate() error {
	if len(c.Client) == 0 {
		return errors.New("no options of a Kafka client")
	}
	return nil
}

// Row is what to repair.
type Row struct {
	Topic string // logical name of the machine's log
	Key   string // of the row
	Upto  int64  // offset in the key's partition: only records parked below it; 0 = all
}

// Refused is a parked record that cannot be sent back.
type Refused struct {
	Offset int64  `json:"offset"` // where it stood
	Reason string `json:"reason"`
}

// Result is what was found.
type Result struct {
	Sent    int       `json:"sent"`              // records sent back now; for Look: that would be
	Before  int       `json:"before"`            // records that an earlier repair had sent back
	Refused []Refused `json:"refused,omitempty"` // records that cannot be, in the order of the dead letter
}

// Look says what Run would do.
func Look(ctx context.Context, cfg Config, row Row) (Result, error) {
	return work(ctx, cfg, row, func(*codecs.Record) error { return nil })
}

// Run sends the parked records of a row back. When it fails, those before the error have been sent.
func Run(ctx context.Context, cfg Config, row Row) (Result, error) {
	cfg = cfg.WithDefaults()
	p, err := newProducer(ctx, cfg, codecs.Topic(cfg.Prefix, row.Topic))
	if err != nil {
		return Result{}, fmt.Errorf("repair of %s: %w", codecs.KeyString(row.Key), err)
	}
	defer p.close()
	r, err := work(ctx, cfg, row, func(rec *codecs.Record) error { return p.send(ctx, rec) })
	if late := p.wait(); err == nil && late != nil {
		err = fmt.Errorf("repair of %s: %w", codecs.KeyString(row.Key), late)
	}
	return r, err
}

// work gives every record that is to be sent back to fn, in the order of the log.
func work(ctx context.Context, cfg Config, row Row, fn func(*codecs.Record) error) (r Result, err error) {
	cfg = cfg.WithDefaults()
	defer func() {
		if err != nil {
			err = fmt.Errorf("repair of %s: %w", codecs.KeyString(row.Key), err)
		}
	}()
	if err := cfg.Validate(); err != nil {
		return r, err
	}
	letters, err := open(ctx, cfg, codecs.TopicDeadLetter, row.Key)
	if err != nil {
		return r, err
	}
	log, err := open(ctx, cfg, row.Topic, row.Key)
	if err != nil {
		return r, err
	}
	f := &finder{row: row, log: log.Topic(), partition: codecs.Partition([]byte(row.Key), log.Topic().Partitions), first: -1,
		sent: map[int64]bool{}, done: map[int64]bool{}}
	f.start, _ = log.Bounds(f.partition)
	if err := letters.Each(ctx, f.lowest); err != nil || f.first < 0 {
		return r, err
	}
	if err := log.From(f.partition, f.first).Each(ctx, f.evidence); err != nil {
		return r, err
	}
	err = letters.Each(ctx, func(letter *codecs.Record) error {
		rec, err := f.next(letter, &r)
		if rec == nil || err != nil {
			return err
		}
		return fn(rec)
	})
	return r, err
}

// open opens the partition of a topic that a key is on.
func open(ctx context.Context, cfg Config, topic, key string) (*replay.Live, error) {
	l, err := replay.OpenLive(ctx, replay.LiveConfig{Client: cfg.Client, Topic: codecs.Topic(cfg.Prefix, topic)})
	if err != nil {
		return nil, err
	}
	return l.Only(codecs.Partition([]byte(key), l.Topic().Partitions)), nil
}
