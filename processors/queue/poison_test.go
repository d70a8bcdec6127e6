package queue_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/processors/queue"
	"github.com/quiesce/quiesce/topology"
)

// Records that are no tasks go to the dead letter, and the tasks around them are worked off.
func TestBadRecordsGoToTheDeadLetter(t *testing.T) {
	k := setup(t, 1)
	topic := topology.WorkTopic(k.prefix, "q")
	send := func(rec *kgo.Record) {
		t.Helper()
		rec.Topic = topic
		require.NoError(t, k.client.ProduceSync(t.Context(), rec).FirstErr())
	}
	task := func(i uint32) *codecs.Task {
		return &codecs.Task{Kind: "sub-job", Batch: "b", Run: "r", Index: i, Attempt: 1}
	}
	p := k.producer()
	require.NoError(t, p.Enqueue(t.Context(), "q", 0, task(0)))
	send(&kgo.Record{Key: []byte("k"), Value: []byte("garbage"), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("v")}}})
	send(&kgo.Record{Key: []byte("no type"), Value: nil})
	other, err := codecs.Encode(topic, "b", "s", &codecs.Event{Type: codecs.TypeBatchNudge, ID: "1", Data: &codecs.BatchNudge{}})
	require.NoError(t, err)
	foreign := &kgo.Record{Key: other.Key, Value: other.Value}
	for _, h := range other.Headers {
		foreign.Headers = append(foreign.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	send(foreign)
	send(&kgo.Record{Key: []byte("large"), Value: bytes.Repeat([]byte("x"), 900<<10)})
	require.NoError(t, p.Enqueue(t.Context(), "q", 0, task(1)))

	dead := readTasks(t, k, codecs.Topic(k.prefix, codecs.TopicDeadLetter))
	q := k.open(t)
	for _, want := range []uint32{0, 1} {
		d := receiveOne(t, q)
		require.Equal(t, want, d.Task.Index)
		d.Done()
	}
	keys := map[string]*codecs.DeadLetter{}
	for len(keys) < 4 {
		select {
		case r := <-dead:
			rec := codecs.Record{Key: r.Key, Value: r.Value}
			for _, h := range r.Headers {
				rec.Headers = append(rec.Headers, codecs.Header{Key: h.Key, Value: h.Value})
			}
			d, err := codecs.ParseDeadLetter(&rec)
			require.NoError(t, err)
			keys[string(r.Key)] = d
		case <-time.After(patience):
			t.Fatalf("dead letters of %v only", keys)
		}
	}
	require.Equal(t, topic, keys["k"].Topic)
	require.Equal(t, int64(1), keys["k"].Offset)
	require.Contains(t, keys["b"].Reason, "batch.nudge")
	require.Eventually(t, func() bool { return k.lag(t) == 0 }, patience, 10*time.Millisecond, "the bad records hold nothing up")
}

func receiveOne(t *testing.T, q queue.Consumer) *queue.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ds, err := q.Receive(ctx, 1)
	require.NoError(t, err)
	return ds[0]
}

// The last records before the end of traffic are committed without further traffic, and without a further Receive.
func lastRecordsAreCommitted(t *testing.T) {
	k := setup(t, 4)
	q := k.open(t)
	for i := range uint32(50) {
		require.NoError(t, k.producer().Enqueue(t.Context(), "q", 0, &codecs.Task{Kind: "sub-job", Batch: "b", Index: i}))
	}
	for range 50 {
		receiveOne(t, q).Done()
	}
	require.Eventually(t, func() bool { return k.lag(t) == 0 }, patience, 5*time.Millisecond)
}

// A topic that was deleted and made anew has other tasks at the same offsets: what was done in the old one says nothing.
func TestTopicMadeAnew(t *testing.T) {
	for name, open := range map[string]int{"all done": 10, "some open": 6} {
		t.Run(name, func(t *testing.T) {
			k := setup(t, 1)
			topic := topology.WorkTopic(k.prefix, "q")
			fill := func() {
				k.client = brokertest.Client(t, k.bootstrap[0], kgo.RecordPartitioner(kgo.ManualPartitioner()))
				p := k.producer() // not one that remembers the old topic's id
				for i := range uint32(10) {
					require.NoError(t, p.Enqueue(t.Context(), "q", 0, &codecs.Task{Kind: "sub-job", Batch: "b", Index: i}))
				}
			}
			fill()
			q := k.open(t)
			for i := range 10 {
				if d := receiveOne(t, q); i < open {
					d.Done()
				}
			}
			require.NoError(t, q.Close())
			committed, err := k.admin.FetchOffsets(t.Context(), topic)
			require.NoError(t, err)

			_, err = k.admin.DeleteTopic(t.Context(), topic)
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				r, err := k.admin.CreateTopic(t.Context(), 1, -1, nil, topic)
				return err == nil && r.Err == nil
			}, patience, 20*time.Millisecond)
			// Brokers forget the offsets of a deleted topic, sooner or later; here is one that has not yet.
			var again kadm.Offsets
			committed.Each(func(o kadm.OffsetResponse) { again.Add(o.Offset) })
			k.admin = kadm.NewClient(brokertest.Client(t, k.bootstrap[0]))
			require.Eventually(t, func() bool { // a topic that was just created is not known at once
				return k.admin.CommitAllOffsets(t.Context(), topic, again) == nil
			}, patience, 20*time.Millisecond)
			fill()
			fresh := k.open(t)
			for i := range uint32(10) {
				d := receiveOne(t, fresh)
				require.Equal(t, i, d.Task.Index)
				require.Equal(t, 1, d.Count)
				d.Done()
			}
		})
	}
}

// Far more tasks than are fetched ahead, or than the commit metadata has room for, all at once: none is lost.
func moreThanTheBacklog(t *testing.T) {
	k := setup(t, 1)
	const n = 3000
	var tasks []*codecs.Task
	for i := range uint32(n) {
		tasks = append(tasks, &codecs.Task{Kind: "sub-job", Batch: "b", Index: i})
	}
	require.NoError(t, k.producer().Enqueue(t.Context(), "q", 0, tasks...))
	q := k.open(t, func(c *queue.Config) { c.Backlog = 100 })
	first := receiveOne(t, q) // the head is not done: what is done above it stands in the metadata
	seen := map[uint32]bool{}
	var open []*queue.Delivery
	take := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		ds, err := q.Receive(ctx, 64)
		for i, d := range ds {
			require.False(t, seen[d.Task.Index])
			seen[d.Task.Index] = true
			if i%2 == 0 {
				d.Done() // every other one: each is a segment of its own
			} else {
				open = append(open, d)
			}
		}
		return err == nil
	}
	for take() {
	}
	require.Less(t, len(seen), n, "the partition is held while its metadata is full")
	first.Done()
	for len(seen) < n-1 {
		for _, d := range open {
			d.Done()
		}
		open = nil
		take()
	}
	for _, d := range open {
		d.Done()
	}
	require.Eventually(t, func() bool { return k.lag(t) == 0 }, patience, 10*time.Millisecond)
}
