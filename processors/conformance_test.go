package processors

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/batch"
)

// TestConformance holds the entries that need the runtime and a broker.
func TestConformance(t *testing.T) {
	t.Run("C28", idlePartitions)
	t.Run("C50", lastRecordsAreCommitted)
}

// idlePartitions: more instances than partitions, and partitions without records, neither complete nor block.
func idlePartitions(t *testing.T) {
	d := deploy(t)
	var ps []*Processor
	for range 6 {
		p, stop := d.start(d.config(batch.New(batch.Config{})))
		defer stop()
		ps = append(ps, p)
	}
	d.send(d.event("b", codecs.TypeBatchStart, &codecs.BatchStart{Run: "r"}), d.event("b", codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "r", Total: 2}),
		d.report("b", 0))
	d.settled(ps...)
	d.send(d.report("b", 1))
	var terminal []string
	d.read(codecs.TopicEvents, func(r *kgo.Record) bool {
		if typeOf(r) == codecs.TypeBatchCompleted {
			terminal = append(terminal, string(r.Key))
		}
		return len(terminal) > 0
	})
	require.Equal(t, []string{"b"}, terminal)
}

// lastRecordsAreCommitted: without further traffic the group's offset reaches the end of the log.
func lastRecordsAreCommitted(t *testing.T) {
	d := deploy(t)
	_, stop := d.start(d.config(batch.New(batch.Config{})))
	defer stop()
	for i := range 5 {
		d.send(d.event(fmt.Sprint("b", i), codecs.TypeBatchStart, &codecs.BatchStart{Run: "r"}))
	}
	admin := kadm.NewClient(d.client)
	topic := d.topic(codecs.TopicControl)
	require.Eventually(t, func() bool {
		ends, err := admin.ListEndOffsets(t.Context(), topic)
		if err != nil {
			return false
		}
		at, err := admin.FetchOffsets(t.Context(), codecs.Group(d.prefix, codecs.GroupController))
		if err != nil { // the group may not be there yet
			return false
		}
		done := true
		ends.Each(func(e kadm.ListedOffset) {
			o, ok := at.Lookup(topic, e.Partition)
			done = done && (e.Offset == 0 || ok && o.At == e.Offset)
		})
		return done
	}, time.Minute, 10*time.Millisecond)
}

func typeOf(r *kgo.Record) string {
	for _, h := range r.Headers {
		if h.Key == codecs.HeaderType {
			name, err := codecs.TypeName(string(h.Value))
			if err == nil {
				return name
			}
		}
	}
	return ""
}

// TestForeignClocksMoveNoDeadline: what a producer thinks the time is decides nothing, because our topics are stamped by
// the broker. A record of 1970 delays no deadline, one of 2100 fires none.
func TestForeignClocksMoveNoDeadline(t *testing.T) {
	d := deploy(t)
	_, stop := d.start(d.config(batch.New(batch.Config{})))
	defer stop()
	dated := func(year int, rec codecs.Record) {
		k := &kgo.Record{Topic: rec.Topic, Key: rec.Key, Value: rec.Value, Timestamp: time.Date(year, 1, 2, 0, 0, 0, 0, time.UTC)}
		for _, h := range rec.Headers {
			k.Headers = append(k.Headers, kgo.RecordHeader(h))
		}
		require.NoError(t, d.client.ProduceSync(t.Context(), k).FirstErr())
	}
	within := func(ms int64) *codecs.Deadlines { return &codecs.Deadlines{CompleteWithin: ms} }
	begin := time.Now()
	dated(1970, d.event("short", codecs.TypeBatchStart, &codecs.BatchStart{Run: "r", Deadlines: within(300)}))
	dated(1970, d.event("long", codecs.TypeBatchStart, &codecs.BatchStart{Run: "r", Deadlines: within(3_600_000)}))
	dated(2100, d.event("long", codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "r", Total: 1}))
	dated(2100, d.event("short", codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "r", Total: 1}))
	expired := false
	d.read(codecs.TopicEvents, func(r *kgo.Record) bool {
		require.False(t, typeOf(r) == codecs.TypeBatchExpired && string(r.Key) == "long", "a record of 2100 fired a deadline")
		expired = expired || typeOf(r) == codecs.TypeBatchExpired && string(r.Key) == "short"
		return expired
	})
	require.GreaterOrEqual(t, time.Since(begin), 300*time.Millisecond, "early")
	dated(1970, d.report("long", 0))
	d.read(codecs.TopicEvents, func(r *kgo.Record) bool { return typeOf(r) == codecs.TypeBatchCompleted && string(r.Key) == "long" })
}
