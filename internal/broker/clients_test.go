package broker_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/internal/broker"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
)

// firstMessage is a sarama consumer group handler that hands on what it gets and marks it.
type firstMessage chan *sarama.ConsumerMessage

func (firstMessage) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (firstMessage) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (f firstMessage) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for m := range c.Messages() {
		s.MarkMessage(m, "")
		s.Commit()
		f <- m
	}
	return nil
}

func TestSaramaGroupTakesOverFromFranzGoGroup(t *testing.T) {
	bootstrap := brokertest.Bootstrap(t)
	topic := brokertest.Topic(t, bootstrap, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	p := brokertest.Client(t, bootstrap)
	require.NoError(t, p.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("1")}, &kgo.Record{Topic: topic, Value: []byte("2")}).FirstErr())

	group := "g-" + topic
	c := brokertest.Client(t, bootstrap, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.Balancers(kgo.RangeBalancer()))
	first := c.PollRecords(ctx, 1)
	require.NoError(t, first.Err())
	require.Equal(t, "1", string(first.Records()[0].Value))
	require.NoError(t, c.CommitRecords(ctx, first.Records()...))
	c.Close()

	cfg := sarama.NewConfig()
	cfg.Version = sarama.V2_8_0_0
	cfg.Consumer.Offsets.AutoCommit.Enable = false
	g, err := sarama.NewConsumerGroup([]string{bootstrap}, group, cfg)
	require.NoError(t, err)
	got := make(firstMessage, 1)
	ctx2, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- g.Consume(ctx2, []string{topic}, got) }()
	require.Equal(t, "2", string((<-got).Value))
	stop()
	require.NoError(t, <-done)
	require.NoError(t, g.Close())
}

func TestStateSurvivesRestart(t *testing.T) {
	cfg := broker.Config{DataDir: t.TempDir(), Topics: []broker.Topic{
		{Name: "t", Partitions: 2, Configs: map[string]string{"message.timestamp.type": "LogAppendTime"}},
	}}
	ctx := context.Background()
	start := time.Now()
	first, err := broker.Start(cfg)
	require.NoError(t, err)
	c := brokertest.Client(t, first.Bootstrap(), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, c.ProduceSync(ctx, dated("t")...).FirstErr())
	offsets := kadm.Offsets{}
	offsets.AddOffset("t", 0, 3, -1)
	require.NoError(t, kadm.NewClient(c).CommitAllOffsets(ctx, "g", offsets))
	id := first.Cluster().TopicInfo("t").TopicID
	c.Close()
	require.NoError(t, first.Close())

	second := brokertest.Start(t, cfg)
	requireNow(t, start, read(t, second.Bootstrap(), "t", 4))
	require.Equal(t, id, second.Cluster().TopicInfo("t").TopicID)
	c = brokertest.Client(t, second.Bootstrap(), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	committed, err := kadm.NewClient(c).FetchOffsets(ctx, "g")
	require.NoError(t, err)
	at, ok := committed.Lookup("t", 0)
	require.True(t, ok)
	require.Equal(t, int64(3), at.At)
	require.NoError(t, c.ProduceSync(ctx, &kgo.Record{Topic: "t", Timestamp: in2100}).FirstErr())
	require.WithinDuration(t, time.Now(), read(t, second.Bootstrap(), "t", 5)[4].Timestamp, time.Minute, "stamping goes on")
}

func TestClientsUseTheAdvertisedAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	b := brokertest.Start(t, broker.Config{Listen: "0.0.0.0:" + port, Advertise: "localhost:" + port, Topics: []broker.Topic{{Name: "t", Partitions: 1}}})
	require.Equal(t, "localhost:"+port, b.Bootstrap())
	c := brokertest.Client(t, "127.0.0.1:"+port)
	require.NoError(t, c.ProduceSync(context.Background(), &kgo.Record{Topic: "t"}).FirstErr())
	brokers, err := kadm.NewClient(c).ListBrokers(context.Background())
	require.NoError(t, err)
	require.Equal(t, "localhost", brokers[0].Host)
}
