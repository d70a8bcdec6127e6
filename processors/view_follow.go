package processors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/cenkalti/backoff/v5"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// ErrViewNotReady is returned by reads of a view that has not loaded all that stood in its topic when it started.
var ErrViewNotReady = errors.New("view is recovering")

// ViewState says what reads of a view are worth.
type ViewState struct {
	Percent float64 // loaded, 0 to 100
	Ready   bool    // reads are answered
	// Connected: the view follows the topic. A ready view that is not connected answers with what it last saw.
	Connected bool
	Err       error // why it is not ready; nil = it is loading
}

// follower keeps a local copy of one compacted topic as a goka view. Its life is a row of incarnations: each has its own
// goka view, consumer and files; between two of them reads fail.
type follower struct {
	cfg    ViewConfig
	topic  string
	judged bool // records carry claims; stale ones are left out
	log    *slog.Logger
	hub    *hub

	mu    sync.RWMutex
	parts []*viewPart // of this incarnation, by partition; nil between two
	view  *goka.View
	fault error
}

// Run follows the topic until ctx ends, and returns nil. What goes wrong is reported and in State; the view is built
// again, with backoff. Not for concurrent use.
func (f *follower) Run(ctx context.Context) error {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = f.cfg.Timing.Backoff, 10*time.Second
	wait.Reset()
	for {
		began := time.Now()
		err := f.live(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > time.Minute {
			wait.Reset()
		}
		if err == nil {
			err = errors.New("the view returned")
		}
		d := wait.NextBackOff()
		f.setFault(err)
		f.log.Error("view failed, building it again", "error", err, "seconds", d.Seconds())
		if !sleep(ctx, d) {
			return nil
		}
	}
}

// live is one incarnation.
func (f *follower) live(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cfg := Config{Bootstrap: f.cfg.Bootstrap, ClientID: f.cfg.ClientID, Security: f.cfg.Security}
	kc, err := kgo.NewClient(kgoOptions(cfg)...)
	if err != nil {
		return fmt.Errorf("view of %s: %w", f.topic, err)
	}
	c := &client{cfg, kc}
	defer c.close()
	topics, err := c.topics(ctx, f.topic)
	if err != nil {
		return err
	}
	dir, unlock, err := f.lockDir()
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }()
	d := topics[f.topic]
	parts := make([]*viewPart, len(d.Partitions))
	for i := range parts {
		parts[i] = &viewPart{f: f, id: int32(i), dir: storeDir(dir, f.topic, int32(i)), topicID: codecs.TopicID(d.ID), fatal: cancel, ctx: ctx, logs: c}
	}
	consumer, err := sarama.NewConsumer(f.cfg.Bootstrap, f.saramaConfig())
	if err != nil {
		return fmt.Errorf("view of %s: %w", f.topic, err)
	}
	defer consumer.Close()
	v, err := f.gokaView(viewConsumer{consumer, parts}, parts)
	if err != nil {
		return fmt.Errorf("view of %s: %w", f.topic, err)
	}
	f.set(parts, v)
	defer f.set(nil, nil)
	err = v.Run(ctx)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// gokaView wires goka to the parts.
func (f *follower) gokaView(consumer sarama.Consumer, parts []*viewPart) (*goka.View, error) {
	return goka.NewView(f.cfg.Bootstrap, goka.Table(f.topic), raw{},
		goka.WithViewLogger(gokaLog{f.log}),
		goka.WithViewClientID(f.cfg.ClientID),
		goka.WithViewHasher(Hasher),
		goka.WithViewAutoReconnect(),
		goka.WithViewBackoffBuilder(func() (goka.Backoff, error) { return &reconnect{first: f.cfg.Timing.Backoff}, nil }),
		goka.WithViewConsumerSaramaBuilder(func([]string, string) (sarama.Consumer, error) { return consumer, nil }),
		goka.WithViewTopicManagerBuilder(func([]string) (goka.TopicManager, error) { return viewTopics{parts}, nil }),
		goka.WithViewStorageBuilder(func(_ string, partition int32) (storage.Storage, error) { return parts[partition], nil }),
		goka.WithViewCallback(func(ctx goka.UpdateContext, s storage.Storage, key string, value []byte) error {
			return parts[ctx.Partition()].take(ctx, key, value)
		}))
}

func (f *follower) saramaConfig() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.V2_8_0_0
	c.ClientID = f.cfg.ClientID
	c.Metadata.Full = false
	c.Consumer.Return.Errors = true // goka reconnects on them
	c.Consumer.MaxWaitTime = viewFetchWait
	c.Consumer.Fetch.Default = 4 << 20 // rows are up to 256 KiB; recovery wants large fetches
	f.cfg.Security.apply(c)
	return c
}

func (f *follower) set(parts []*viewPart, v *goka.View) {
	f.mu.Lock()
	f.parts, f.view = parts, v
	if v != nil {
		f.fault = nil
	}
	f.mu.Unlock()
	f.hub.all()
}

func (f *follower) setFault(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = err
}

// State returns what reads are worth now.
func (f *follower) State() ViewState {
	f.mu.RLock()
	defer f.mu.RUnlock()
	s := ViewState{Err: f.fault}
	if len(f.parts) == 0 {
		return s
	}
	s.Ready = true
	followed := f.view.CurrentState() == goka.ViewStateRunning
	have, want := int64(0), int64(0)
	for _, p := range f.parts {
		next, start, end := p.progress()
		have, want = have+max(0, min(next, end)-start), want+end-start
		s.Ready = s.Ready && p.loaded.Load()
		followed = followed && p.contact.ok()
	}
	switch {
	case s.Ready:
		s.Percent, s.Connected = 100, followed
	case want > 0:
		s.Percent = min(99.9, 100*float64(have)/float64(want))
	}
	return s
}

// Ready returns how much is loaded, in percent, and whether reads are answered.
func (f *follower) Ready() (percent float64, ok bool) {
	s := f.State()
	return s.Percent, s.Ready
}

// read gives the parts of a view that is ready; they stay open until done is called.
func (f *follower) read() (parts []*viewPart, done func(), err error) {
	f.mu.RLock()
	for _, p := range f.parts {
		if !p.loaded.Load() {
			f.mu.RUnlock()
			return nil, nil, ErrViewNotReady
		}
	}
	if len(f.parts) == 0 {
		defer f.mu.RUnlock()
		return nil, nil, errors.Join(ErrViewNotReady, f.fault)
	}
	return f.parts, f.mu.RUnlock, nil
}
