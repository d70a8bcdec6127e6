package broker_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/internal/broker"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
)

// BenchmarkProduce shows what stamping costs: one record at a time (latency), and many in compressed batches.
func BenchmarkProduce(b *testing.B) {
	for _, timestamps := range []string{"CreateTime", "LogAppendTime"} {
		bk := brokertest.Embedded(b, broker.Topic{Name: "t", Partitions: 4, Configs: map[string]string{"message.timestamp.type": timestamps}})
		ctx, value := context.Background(), make([]byte, 100)
		b.Run(timestamps+"/one at a time", func(b *testing.B) {
			c := brokertest.Client(b, bk.Bootstrap(), kgo.ProducerLinger(0))
			for b.Loop() {
				require.NoError(b, c.ProduceSync(ctx, &kgo.Record{Topic: "t", Value: value}).FirstErr())
			}
		})
		b.Run(timestamps+"/in batches", func(b *testing.B) {
			c := brokertest.Client(b, bk.Bootstrap())
			for b.Loop() {
				c.Produce(ctx, &kgo.Record{Topic: "t", Value: value}, nil)
			}
			require.NoError(b, c.Flush(ctx))
		})
	}
}
