package broker_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/internal/broker"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
)

var (
	in1970 = time.UnixMilli(1000)
	in2100 = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
)

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

// read consumes n records of a topic from the beginning.
func read(t *testing.T, bootstrap, topic string, n int, opts ...kgo.Opt) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := brokertest.Client(t, bootstrap, append(opts, kgo.ConsumeTopics(topic))...)
	var got []*kgo.Record
	for len(got) < n {
		fetches := c.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		got = append(got, fetches.Records()...)
	}
	return got
}

func dated(topic string) []*kgo.Record {
	var rs []*kgo.Record
	for i, at := range []time.Time{in1970, in2100, in1970, time.Now()} {
		rs = append(rs, &kgo.Record{
			Topic: topic, Timestamp: at, Key: []byte("k" + strconv.Itoa(i)), Value: make([]byte, 200),
			Headers: []kgo.RecordHeader{{Key: "h", Value: []byte{byte(i)}}},
		})
	}
	return rs
}

func requireNow(t *testing.T, start time.Time, got []*kgo.Record) {
	t.Helper()
	for i, r := range got {
		require.WithinRange(t, r.Timestamp, start.Truncate(time.Millisecond).Add(-time.Second), time.Now().Add(time.Second), "record %d", i)
		require.Equal(t, int64(i), r.Offset)
		require.Equal(t, "k"+strconv.Itoa(i), string(r.Key))
		require.Len(t, r.Value, 200)
		require.Equal(t, []byte{byte(i)}, r.Headers[0].Value)
	}
}

func TestRecordsOf1970And2100ReadAsNow(t *testing.T) {
	bootstrap := brokertest.Bootstrap(t)
	for name, codec := range codecs {
		t.Run("franz-go/"+name, func(t *testing.T) {
			topic := brokertest.Topic(t, bootstrap, 1, "message.timestamp.type=LogAppendTime")
			start := time.Now()
			// One batch, so that the deltas between its records count.
			c := brokertest.Client(t, bootstrap, kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(50*time.Millisecond))
			require.NoError(t, c.ProduceSync(context.Background(), dated(topic)...).FirstErr())
			requireNow(t, start, read(t, bootstrap, topic, 4))
		})
		t.Run("sarama/"+name, func(t *testing.T) {
			topic := brokertest.Topic(t, bootstrap, 1, "message.timestamp.type=LogAppendTime")
			start := time.Now()
			cfg := sarama.NewConfig()
			cfg.Version = sarama.V2_8_0_0
			cfg.Producer.Return.Successes = true
			require.NoError(t, cfg.Producer.Compression.UnmarshalText([]byte(name)))
			p, err := sarama.NewSyncProducer([]string{bootstrap}, cfg)
			require.NoError(t, err)
			defer p.Close()
			var ms []*sarama.ProducerMessage
			for _, r := range dated(topic) {
				ms = append(ms, &sarama.ProducerMessage{
					Topic: topic, Timestamp: r.Timestamp, Key: sarama.ByteEncoder(r.Key), Value: sarama.ByteEncoder(r.Value),
					Headers: []sarama.RecordHeader{{Key: []byte("h"), Value: r.Headers[0].Value}},
				})
			}
			require.NoError(t, p.SendMessages(ms))
			requireNow(t, start, read(t, bootstrap, topic, 4))
		})
	}
}

func TestTransactionsAreStamped(t *testing.T) {
	bootstrap := brokertest.Bootstrap(t)
	topic := brokertest.Topic(t, bootstrap, 1, "message.timestamp.type=LogAppendTime")
	ctx, start := context.Background(), time.Now()
	c := brokertest.Client(t, bootstrap, kgo.TransactionalID("tx-"+topic), kgo.ProducerLinger(50*time.Millisecond))

	require.NoError(t, c.BeginTransaction())
	require.NoError(t, c.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("aborted"), Timestamp: in2100}).FirstErr())
	require.NoError(t, c.EndTransaction(ctx, kgo.TryAbort))
	require.NoError(t, c.BeginTransaction())
	require.NoError(t, c.ProduceSync(ctx, dated(topic)...).FirstErr())
	require.NoError(t, c.EndTransaction(ctx, kgo.TryCommit))

	got := read(t, bootstrap, topic, 4, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	for i, r := range got {
		require.Equal(t, "k"+strconv.Itoa(i), string(r.Key), "the aborted record is not read")
		r.Offset = int64(i)
	}
	requireNow(t, start, got)
}

func TestCreateTimeTopicsKeepTheirTimes(t *testing.T) {
	bootstrap := brokertest.Bootstrap(t)
	// The real broker refuses times that are far ahead unless told otherwise.
	topic := brokertest.Topic(t, bootstrap, 1, "message.timestamp.after.max.ms=9223372036854775807")
	sent := dated(topic)
	c := brokertest.Client(t, bootstrap, kgo.ProducerLinger(50*time.Millisecond))
	require.NoError(t, c.ProduceSync(context.Background(), sent...).FirstErr())
	for i, r := range read(t, bootstrap, topic, 4) {
		require.Equal(t, sent[i].Timestamp.UnixMilli(), r.Timestamp.UnixMilli())
	}
}

func TestAppendTimeComesFromTheGivenClock(t *testing.T) {
	at := time.UnixMilli(1_234_567_890_123)
	b := brokertest.Start(t, broker.Config{
		AppendTime: true, Now: func() time.Time { return at },
		Topics: []broker.Topic{
			{Name: "default", Partitions: 1},
			{Name: "own", Partitions: 1, Configs: map[string]string{"message.timestamp.type": "CreateTime"}},
		},
	})
	c := brokertest.Client(t, b.Bootstrap())
	for topic, want := range map[string]time.Time{"default": at, "own": in1970} {
		require.NoError(t, c.ProduceSync(context.Background(), &kgo.Record{Topic: topic, Timestamp: in1970}).FirstErr())
		require.Equal(t, want.UnixMilli(), read(t, b.Bootstrap(), topic, 1)[0].Timestamp.UnixMilli())
	}
}
