//go:build unix

package apache_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/internal/broker/apache"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

// produce writes a record with acks=all, over leader changes.
func produce(t *testing.T, ctx context.Context, c *kgo.Client, topic, value string) {
	t.Helper()
	require.NoError(t, c.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr(), value)
}

func TestThreeNodesSurviveKillPauseAndRestart(t *testing.T) {
	cluster := brokertest.Cluster(t, apache.Config{Nodes: 3})
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	topic := brokertest.Topic(t, cluster.Bootstrap(), 1)
	c := brokertest.Client(t, cluster.Bootstrap(), kgo.ConsumeTopics(topic), kgo.ProduceRequestTimeout(time.Second),
		kgo.RequestTimeoutOverhead(time.Second))
	leader := func() int {
		topics, err := kadm.NewClient(c).ListTopics(ctx, topic)
		require.NoError(t, err)
		return int(topics[topic].Partitions[0].Leader)
	}
	produce(t, ctx, c, topic, "healthy")

	killed := leader()
	require.NoError(t, cluster.Kill(killed))
	require.Error(t, cluster.Kill(killed), "it is gone")
	produce(t, ctx, c, topic, "one node killed")
	require.NoError(t, cluster.Restart(ctx, killed))

	require.Eventually(t, func() bool { return leader() > 0 }, time.Minute, 50*time.Millisecond)
	paused := leader()
	require.NoError(t, cluster.Pause(paused))
	produce(t, ctx, c, topic, "one node paused")
	require.NoError(t, cluster.Resume(paused))

	require.NoError(t, cluster.Stop(killed))
	produce(t, ctx, c, topic, "one node stopped")

	var got []string
	for len(got) < 4 {
		fetches := c.PollFetches(ctx)
		require.NoError(t, ctx.Err())
		fetches.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
	}
	require.Equal(t, []string{"healthy", "one node killed", "one node paused", "one node stopped"}, got)
	require.ErrorContains(t, cluster.Kill(4), "the cluster has nodes 1 to 3")
}

func TestOneNodeKeepsItsDataOverKill(t *testing.T) {
	cluster := brokertest.Cluster(t, apache.Config{})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	topic := brokertest.Topic(t, cluster.Bootstrap(), 1)
	c := brokertest.Client(t, cluster.Bootstrap(), kgo.ConsumeTopics(topic))
	produce(t, ctx, c, topic, "before")
	require.NoError(t, cluster.Kill(1))
	require.NoError(t, cluster.Restart(ctx, 1))
	require.ErrorContains(t, cluster.Restart(ctx, 1), "already running")
	fetches := c.PollFetches(ctx)
	require.NoError(t, fetches.Err())
	require.Equal(t, "before", string(fetches.Records()[0].Value))
}

func TestABadSettingShowsTheBrokersWords(t *testing.T) {
	_, err := apache.Start(context.Background(), brokertest.Install(t), apache.Config{Settings: map[string]string{"log.segment.bytes": "many"}})
	require.ErrorContains(t, err, "many")
}
