package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/queue"
)

// Run works off a queue until ctx is done: it takes no new tasks then, waits DrainTimeout for those that run, interrupts
// the others, and returns when every outcome is durable. It moves the queue's due retries as well.
func Run(ctx context.Context, cfg Config) (err error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return err
	}
	if cfg.Bootstrap == "" {
		return fmt.Errorf("worker of queue %s: no bootstrap server", cfg.Queue)
	}
	seeds := strings.Split(cfg.Bootstrap, ",")
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(seeds...), kgo.RecordPartitioner(Partitioner(cfg.Prefix)), kgo.ProducerLinger(0),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerBatchMaxBytes(maxChunkBytes + 512<<10), kgo.ClientID(cfg.ClientID),
	}, cfg.Options...)...)
	if err != nil {
		return fmt.Errorf("worker of queue %s: %w", cfg.Queue, err)
	}
	defer cl.Close()
	qc := queue.Config{Bootstrap: seeds, Prefix: cfg.Prefix, Queue: cfg.Queue, Retries: cfg.Retries, Logger: cfg.Log, Options: cfg.Options}
	qc = qc.WithDefaults()
	cfg.Retries = qc.Retries
	consumer, err := queue.Open(ctx, qc)
	if ctx.Err() != nil && err != nil {
		return nil
	}
	if err != nil {
		return err
	}
	retry, err := queue.OpenRetry(qc)
	if err != nil {
		return errors.Join(err, consumer.Close())
	}
	moving, stop := context.WithCancel(ctx)
	var movers sync.WaitGroup
	movers.Go(func() {
		if err := retry.Run(moving); err != nil {
			cfg.Log.Error("retries are not moved any more", "queue", cfg.Queue, "error", err)
		}
	})
	producer := queue.NewProducer(cl, cfg.Prefix, codecs.Source(cfg.Prefix, cfg.ClientID), func(string) []time.Duration { return cfg.Retries })
	reporter := NewReporter(cl, cfg)
	err = Work(ctx, cfg, consumer, producer, reporter)
	stop()
	movers.Wait()
	reporter.Close()
	return errors.Join(err, consumer.Close())
}
