package queue_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/internal/topics"
	"github.com/quiesce/quiesce/processors/queue"
	"github.com/quiesce/quiesce/processors/queue/queuetest"
	"github.com/quiesce/quiesce/topology"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

const patience = 60 * time.Second

var kitNumber atomic.Int64

// kit is a deployment of its own with one queue "q" on the broker of the test.
type kit struct {
	bootstrap []string
	prefix    string
	queue     topology.Queue
	client    *kgo.Client
	admin     *kadm.Client
	log       *slog.Logger
}

func setup(t testing.TB, partitions int32, retries ...time.Duration) *kit {
	t.Helper()
	addr := brokertest.Bootstrap(t)
	k := &kit{bootstrap: strings.Split(addr, ","), prefix: fmt.Sprintf("q%d-%d", os.Getpid(), time.Now().UnixNano()+kitNumber.Add(1)),
		queue: topology.Queue{Name: "q", Partitions: partitions, Retries: retries}.WithDefaults(),
		log:   slog.New(slog.NewTextHandler(io.Discard, nil))}
	if testing.Verbose() {
		k.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	}
	k.client = brokertest.Client(t, addr, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	k.admin = kadm.NewClient(k.client)
	names := map[string]bool{codecs.Topic(k.prefix, codecs.TopicDeadLetter): true, codecs.Topic(k.prefix, codecs.TopicControl): true}
	for _, n := range k.queue.Topics(k.prefix) {
		names[n] = true
	}
	var specs []topology.Spec
	for _, s := range (topology.Settings{Prefix: k.prefix, Partitions: 2, Queues: []topology.Queue{k.queue}}).System() {
		if names[s.Name] {
			specs = append(specs, s)
		}
	}
	m, err := topics.New(topics.Config{Client: k.client})
	require.NoError(t, err)
	_, err = m.Apply(t.Context(), specs)
	require.NoError(t, err)
	return k
}

// config makes everything quick.
func (k *kit) config() queue.Config {
	return queue.Config{Bootstrap: k.bootstrap, Prefix: k.prefix, Queue: "q", Retries: k.queue.Retries, CommitEvery: 20 * time.Millisecond, Grace: 100 * time.Millisecond,
		Logger: k.log, Options: []kgo.Opt{kgo.MetadataMinAge(50 * time.Millisecond), kgo.HeartbeatInterval(100 * time.Millisecond)}}
}

func (k *kit) open(t testing.TB, change ...func(*queue.Config)) *queue.Kafka {
	t.Helper()
	cfg := k.config()
	for _, c := range change {
		c(&cfg)
	}
	q, err := queue.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { q.Close() })
	return q
}

func (k *kit) producer() *queue.KafkaProducer {
	return queue.NewProducer(k.client, k.prefix, codecs.Source(k.prefix, "test"), func(string) []time.Duration { return k.queue.Retries })
}

// retry runs a mover of the retry tiers until the test ends or the function is called.
func (k *kit) retry(t testing.TB) (stop func()) {
	t.Helper()
	r, err := queue.OpenRetry(k.config())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(t, <-done)
		}
	}
	t.Cleanup(stop)
	return stop
}

// open offsets of the queue: how many records are not below the committed offsets.
func (k *kit) lag(t testing.TB) int64 {
	t.Helper()
	topic := topology.WorkTopic(k.prefix, "q")
	ends, err := k.admin.ListEndOffsets(t.Context(), topic)
	require.NoError(t, err)
	committed, err := k.admin.FetchOffsets(t.Context(), topic)
	require.NoError(t, err)
	var lag int64
	ends.Each(func(o kadm.ListedOffset) {
		at, _ := committed.Lookup(topic, o.Partition)
		lag += o.Offset - max(at.At, 0)
	})
	return lag
}

func TestKafka(t *testing.T) {
	queuetest.Run(t, func(t *testing.T) *queuetest.Env {
		k := setup(t, 4, 100*time.Millisecond)
		k.retry(t)
		return &queuetest.Env{
			Queue: "q", Producer: k.producer(), Delay: 100 * time.Millisecond, Storm: stormFor(),
			Open:   func(t *testing.T) queue.Consumer { return k.open(t) },
			Crash:  func(c queue.Consumer) { queue.Crash(c.(*queue.Kafka)) },
			Settle: func(c queue.Consumer) { require.NoError(t, queue.Commit(t.Context(), c.(*queue.Kafka))) },
		}
	})
}

func TestConformance(t *testing.T) {
	t.Run("C15", moreThanTheBacklog)
	t.Run("C47", doneAboveAnOpenOne)
	t.Run("C50", lastRecordsAreCommitted)
}

func stormFor() time.Duration {
	if os.Getenv("QUIESCE_TEST_LONG") == "1" {
		return 30 * time.Second
	}
	return 5 * time.Second
}
