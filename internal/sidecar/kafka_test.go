package sidecar_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

func TestGroupsSayWhatIsReadAndByWhom(t *testing.T) {
	addr := brokertest.Bootstrap(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	topic, group := brokertest.Topic(t, addr, 2), fmt.Sprintf("g%d", time.Now().UnixNano())
	c := brokertest.Client(t, addr, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for i := range 5 {
		require.NoError(t, c.ProduceSync(ctx, &kgo.Record{Topic: topic, Partition: int32(i % 2), Value: []byte("x")}).FirstErr())
	}
	groups := sidecar.NewKafkaGroups(c)
	n, err := groups.Partitions(ctx, topic)
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
	n, err = groups.Partitions(ctx, topic+"-none")
	require.NoError(t, err)
	require.EqualValues(t, 0, n)

	g, err := groups.Group(ctx, group, []string{topic})
	require.NoError(t, err)
	require.Zero(t, g.Members, "nobody has joined")
	require.Len(t, g.Inputs, 2)
	require.EqualValues(t, -1, g.Inputs[0].Committed)
	require.EqualValues(t, 3, g.Inputs[0].Lag())

	member := brokertest.Client(t, addr, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.ClientID("worker-7"), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for read := 0; read < 5; {
		f := member.PollFetches(ctx)
		require.NoError(t, ctx.Err())
		read += f.NumRecords()
	}
	offsets := kadm.Offsets{}
	offsets.AddOffset(topic, 1, 1, -1)
	require.NoError(t, kadm.NewClient(c).CommitAllOffsets(ctx, group+"-other", offsets))
	require.NoError(t, member.CommitRecords(ctx, &kgo.Record{Topic: topic, Partition: 0, Offset: 1}))
	g, err = groups.Group(ctx, group, []string{topic})
	require.NoError(t, err)
	require.Equal(t, "Stable", g.State)
	require.Equal(t, 1, g.Members)
	require.Equal(t, "worker-7", g.Inputs[0].Client)
	require.EqualValues(t, 2, g.Inputs[0].Committed)
	require.EqualValues(t, 1, g.Inputs[0].Lag())
	require.EqualValues(t, 2, g.Inputs[1].Lag())
}

func TestControlLogWritesWhereTheBatchLives(t *testing.T) {
	addr := brokertest.Bootstrap(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	prefix := fmt.Sprintf("p%d", time.Now().UnixNano())
	c := brokertest.Client(t, addr)
	log, err := sidecar.OpenControlLog(prefix, "test", kgo.SeedBrokers(addr))
	require.NoError(t, err)
	defer log.Close()
	short, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	_, err = log.Append(short, "b-1", &codecs.Event{Type: codecs.TypeBatchNudge, ID: "x"})
	require.ErrorContains(t, err, "does not exist")

	_, err = kadm.NewClient(c).CreateTopic(ctx, 7, -1, nil, codecs.Topic(prefix, codecs.TopicControl))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := log.Append(ctx, "other", &codecs.Event{Type: codecs.TypeBatchNudge, ID: "x"})
		return err == nil
	}, time.Minute, 20*time.Millisecond)
	for i := range 20 {
		id := fmt.Sprintf("b-%d", i)
		before, err := log.Last(ctx, id)
		require.NoError(t, err)
		pos, err := log.Append(ctx, id, &codecs.Event{Type: codecs.TypeBatchSeal, ID: "x", Data: &codecs.BatchSeal{Run: "r", Total: 1}})
		require.NoError(t, err)
		require.Equal(t, api.Position{Partition: codecs.Partition([]byte(id), 7), Offset: before.Offset + 1}, pos)
		after, err := log.Last(ctx, id)
		require.NoError(t, err)
		require.Equal(t, pos, after)
	}
}
