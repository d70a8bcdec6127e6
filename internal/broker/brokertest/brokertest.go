// Package brokertest gives tests a broker: the embedded one, or the real Apache Kafka that `make test-kafka` runs.
package brokertest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/internal/broker"
	"github.com/quiesce/quiesce/internal/broker/apache"
)

// Real returns the address of the real broker, "" when the tests run on the embedded one.
func Real() string { return os.Getenv(apache.EnvBootstrap) }

// NeedReal returns the address of the real broker, and skips a test that is worth nothing on the embedded one.
func NeedReal(t testing.TB) string {
	t.Helper()
	if Real() == "" {
		t.Skip("needs Apache Kafka: make test-kafka")
	}
	return Real()
}

// Embedded starts an embedded broker in memory that ends with the test.
func Embedded(t testing.TB, topics ...broker.Topic) *broker.Broker {
	t.Helper()
	return Start(t, broker.Config{Topics: topics})
}

// Start starts an embedded broker that ends with the test.
func Start(t testing.TB, cfg broker.Config) *broker.Broker {
	t.Helper()
	b, err := broker.Start(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// Bootstrap returns the real broker's address when there is one, else that of an embedded broker of this test.
func Bootstrap(t testing.TB) string {
	t.Helper()
	if addr := Real(); addr != "" {
		return addr
	}
	return Embedded(t).Bootstrap()
}

// Client returns a franz-go client of the broker that ends with the test.
func Client(t testing.TB, bootstrap string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(strings.Split(bootstrap, ",")...)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

var topicNumber atomic.Int64

// Topic creates a topic of the test's own, waits until its partitions have leaders, and returns its name. configs are
// key=value.
func Topic(t testing.TB, bootstrap string, partitions int32, configs ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	admin := kadm.NewClient(Client(t, bootstrap))
	name := fmt.Sprintf("t%d-%d-%d", os.Getpid(), time.Now().UnixNano(), topicNumber.Add(1))
	settings := map[string]*string{}
	for _, c := range configs {
		k, v, ok := strings.Cut(c, "=")
		require.True(t, ok, "topic setting %q is not key=value", c)
		settings[k] = &v
	}
	_, err := admin.CreateTopic(ctx, partitions, -1, settings, name)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return hasLeaders(ctx, admin, name, int(partitions)) }, time.Minute, 20*time.Millisecond,
		"topic %s got no leaders", name)
	return name
}

func hasLeaders(ctx context.Context, admin *kadm.Client, topic string, partitions int) bool {
	topics, err := admin.ListTopics(ctx, topic)
	if err != nil || len(topics[topic].Partitions) != partitions {
		return false
	}
	for _, p := range topics[topic].Partitions {
		if p.Err != nil || p.Leader < 0 {
			return false
		}
	}
	return true
}
