package processors

import (
	"bufio"
	"fmt"
	"io"
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
	t.Run("C11", ownersChangeWhileCompletionsArrive)
	t.Run("C28", idlePartitions)
	t.Run("C49", killedBetweenPollAndFold)
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

// ownersChangeWhileCompletionsArrive: completions that an owner has taken and not folded in when its partitions go to
// another instance are folded in by that one: no batch misses any, each ends once.
func ownersChangeWhileCompletionsArrive(t *testing.T) {
	const batches = 8
	d := deploy(t)
	m := func() Config { return d.config(batch.New(batch.Config{})) }
	first, stopFirst := d.start(m())
	d.ready(first)
	each := func(record func(key string) codecs.Record) {
		var recs []codecs.Record
		for b := range batches {
			recs = append(recs, record(fmt.Sprint("b", b)))
		}
		d.send(recs...)
	}
	each(func(key string) codecs.Record {
		return d.event(key, codecs.TypeBatchStart, &codecs.BatchStart{Run: "r"})
	})
	total := uint32(0)
	report := func(n int) {
		for range n {
			each(func(key string) codecs.Record { return d.report(key, total) })
			total++
		}
	}
	report(10)
	second, stopSecond := d.start(m()) // takes partitions over while the reports go on
	for begin := time.Now(); len(second.Status()) == 0; report(1) {
		require.Less(t, time.Since(begin), 2*time.Minute, "the second instance gets no partition")
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stopFirst()
	}()
	report(20)
	<-stopped
	third, _ := d.start(m())
	report(10)
	stopSecond()
	report(10)
	each(func(key string) codecs.Record {
		return d.event(key, codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "r", Total: total})
	})
	ends := map[string]uint32{} // by batch: how many tasks were ok
	d.read(codecs.TopicEvents, func(r *kgo.Record) bool {
		if typeOf(r) == codecs.TypeBatchCompleted {
			ends[string(r.Key)] = d.decode(r).Data.(*codecs.BatchEvent).Counts.Ok
		}
		return len(ends) == batches
	})
	d.settled(third)
	ids := map[string]bool{}
	for p := range int32(testPartitions) {
		for _, rec := range d.partition(d.topic(codecs.TopicEvents), p) {
			if typ, _ := rec.Header(codecs.HeaderType); string(typ) == "quiesce."+codecs.TypeBatchCompleted+".v1" {
				id, _ := rec.Header(codecs.HeaderID)
				ids[string(id)] = true
			}
		}
	}
	require.Len(t, ids, batches)
	for key, ok := range ends {
		require.Equal(t, total, ok, key)
	}
}

// killedBetweenPollAndFold: kill -9 while the process holds records that it has read and not folded in. The next one, on
// the same disk or an empty one, folds in every record, once.
func killedBetweenPollAndFold(t *testing.T) {
	for name, fresh := range map[string]bool{"the same disk": false, "an empty disk": true} {
		t.Run(name, func(t *testing.T) {
			d := deploy(t)
			dir := t.TempDir()
			const total = 50
			d.send(d.event("k", codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "r", Total: total}))
			for i := range uint32(total) {
				d.send(d.report("k", i))
			}
			out, in := io.Pipe()
			cmd := d.childWith(childConfig{DataDir: dir, InstanceID: "only", HoldAt: 20}, in)
			line, err := bufio.NewReader(out).ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "held\n", line)
			kill(t, cmd)
			if fresh {
				dir = t.TempDir()
			}
			cfg := d.config(&tally{})
			cfg.DataDir, cfg.InstanceID = dir, "only"
			p, stop := d.start(cfg)
			d.settled(p)
			stop()
			d.verdict()
			last := d.read(codecs.TopicEvents, func(r *kgo.Record) bool { return typeOf(r) == codecs.TypeBatchCompleted })
			require.Equal(t, uint32(total), d.decode(last[len(last)-1]).Data.(*codecs.BatchEvent).Counts.Ok)
		})
	}
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

func (d *deployment) decode(r *kgo.Record) *codecs.Event {
	rec := codecs.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		rec.Headers = append(rec.Headers, codecs.Header{Key: h.Key, Value: h.Value})
	}
	ev := &codecs.Event{}
	require.NoError(d.t, codecs.Decode(&rec, ev))
	return ev
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
