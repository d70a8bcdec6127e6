package stage_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/processors/stage"
)

// config alters a setting of a topic.
func (k *kit) config(topic, name, value string) {
	k.t.Helper()
	_, err := k.admin.AlterTopicConfigs(context.Background(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}, topic)
	require.NoError(k.t, err)
}

// A record that is as large as a topic takes fails: its dead letter needs more room than it has itself, and more than the
// client sends by default.
func TestALargeRecordThatFailsDoesNotStopThePartition(t *testing.T) {
	k := setup(t, twoStages)
	f := k.follow()
	k.config(k.topo.Source, "max.message.bytes", "3000000")
	k.config(codecs.Topic(k.prefix, codecs.TopicDeadLetter), "max.message.bytes", "2000000")
	large := brokertest.Client(t, k.bootstrap, kgo.ProducerBatchMaxBytes(3_000_000), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	sizes := []int{900_000, 1_000_000, 1_900_000, 2_900_000}
	for i, size := range sizes {
		tag := codecs.Tag{Batch: "b-1", Run: "r", Index: uint32(i)}
		rec := &kgo.Record{Topic: k.topo.Source, Value: bytes.Repeat([]byte{'x'}, size)}
		for _, h := range codecs.AppendTag(nil, &tag) {
			rec.Headers = append(rec.Headers, kgo.RecordHeader(h))
		}
		require.NoError(t, large.ProduceSync(context.Background(), rec).FirstErr())
	}
	k.run("copy", func(context.Context, *stage.Record) ([]stage.Output, error) {
		return nil, stage.NoRetry(errors.New("no"))
	})
	f.until(k, "b-1", "all failed", func(b *folded) bool { return b.counts()["failed"] == len(sizes) })
	dead := k.deadLetters()
	require.Len(t, dead, len(sizes))
	whole := 0
	for _, d := range dead {
		about, err := codecs.ParseDeadLetter(&d)
		require.NoError(t, err)
		require.Equal(t, "no", about.Reason)
		if sum, named := d.Header(codecs.HeaderDeadSHA256); named {
			require.Empty(t, d.Value)
			require.Len(t, sum, 64)
			continue
		}
		require.Len(t, d.Value, sizes[about.Offset])
		whole++
	}
	require.Equal(t, 3, whole, "all that fit are kept whole")
}

// noise is what no compression makes smaller.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// An output that its topic does not take is the record's failure, not the partition's.
func TestAnOutputThatItsTopicDoesNotTakeFailsTheTask(t *testing.T) {
	k := setup(t, twoStages)
	f := k.follow()
	k.config(k.name("b"), "max.message.bytes", "20000")
	k.run("copy", func(_ context.Context, r *stage.Record) ([]stage.Output, error) {
		size := 0
		switch r.Index {
		case 3:
			size = 21_000
		case 4:
			size = 20_000 - 100 // it fits, its headers do not
		case 5:
			size = 18_000
		}
		return []stage.Output{{Topic: k.name("b"), Key: r.Key, Value: noise(size)}}, nil
	})
	k.run("count", end)
	k.feed("b-1", "ledger", 10)
	b := f.completed(k, "b-1")
	require.Equal(t, map[string]int{"ok": 8, "failed": 2}, b.counts())
	require.Contains(t, b.reasons["0/3"], "at most")
	require.Contains(t, b.reasons["0/4"], "at most")
}
