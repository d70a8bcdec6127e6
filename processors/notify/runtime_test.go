package notify_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/notify"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, append(brokertest.Singletons(), goleak.IgnoreAnyFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"))...)
}

// Over a restart, and with repeated events, the queue gets one delivery for each event and destination.
func TestDeliveriesOverARestart(t *testing.T) {
	bootstrap, dir := brokertest.Embedded(t).Bootstrap(), t.TempDir()
	client := brokertest.Client(t, bootstrap, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	compact := "compact"
	for topic, c := range map[string]map[string]*string{"n.events": {}, "n.dead-letter": {}, "n.work.notify": {}, "n.notifier-table": {"cleanup.policy": &compact}} {
		_, err := kadm.NewClient(client).CreateTopic(context.Background(), 2, -1, c, topic)
		require.NoError(t, err)
	}
	start := func() func() {
		m, err := notify.New(notify.Config{Subscriptions: []notify.Subscription{{Event: "batch.failed", URL: "https://a.example"}, {Event: "batch.*", URL: "https://b.example"}}})
		require.NoError(t, err)
		p, err := processors.New(processors.Config{Bootstrap: []string{bootstrap}, Prefix: "n", Machine: m, DataDir: dir, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		return func() { cancel(); require.NoError(t, <-done) }
	}
	send := func(n int, typ string) {
		rec, err := codecs.Encode("n.events", "b", "/t", &codecs.Event{Type: typ, ID: fmt.Sprint(n), Data: &codecs.BatchEvent{Run: "r"},
			Src: codecs.Src{Group: "c", Partition: int32(n % 2), Offset: int64(n)}})
		require.NoError(t, err)
		k := &kgo.Record{Topic: rec.Topic, Partition: int32(n % 2), Key: rec.Key, Value: rec.Value}
		for _, h := range rec.Headers {
			k.Headers = append(k.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		require.NoError(t, client.ProduceSync(context.Background(), k).FirstErr())
	}
	const n = 40
	stop := start()
	for i := range n {
		send(i, codecs.TypeBatchFailed)
		if i%7 == 0 {
			send(i, codecs.TypeBatchFailed)
		}
		if i == n/2 {
			stop()
			stop = start()
		}
	}
	for i := range 2 { // behind all others, on each partition
		send(n+i, codecs.TypeBatchDrained)
	}

	reader := brokertest.Client(t, bootstrap, kgo.ConsumeTopics("n.work.notify"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ids, records, last := map[string]bool{}, 0, 0
	for last < 2 || len(ids) < 2*n+2 {
		f := reader.PollFetches(ctx)
		require.NoError(t, ctx.Err(), "%d deliveries", len(ids))
		for it := f.RecordIter(); !it.Done(); {
			r := it.Next()
			rec := codecs.Record{Key: r.Key, Value: r.Value}
			for _, h := range r.Headers {
				rec.Headers = append(rec.Headers, codecs.Header{Key: h.Key, Value: h.Value})
			}
			var ev codecs.Event
			require.NoError(t, codecs.Decode(&rec, &ev))
			d, err := notify.ReadDelivery(ev.Data.(*codecs.Task))
			require.NoError(t, err)
			records++
			ids[ev.Data.(*codecs.Task).Id] = true
			if d.Type == codecs.TypeBatchDrained {
				last++
			}
		}
	}
	stop()
	require.Len(t, ids, 2*n+2)
	require.Equal(t, 2*n+2, records, "a clean restart repeats nothing")
}
