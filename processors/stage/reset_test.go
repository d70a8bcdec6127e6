package stage_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/feeder"
	"github.com/quiesce/quiesce/processors/stage"
)

// commits reads what the group has committed.
func (k *kit) commits(name string) kadm.OffsetResponses {
	k.t.Helper()
	o, err := k.admin.FetchOffsets(context.Background(), k.topo.Stages[name].Group)
	require.NoError(k.t, err)
	return o
}

// drained waits until a group has committed everything of a topic.
func (k *kit) drained(name, topic string) {
	k.t.Helper()
	require.Eventually(k.t, func() bool {
		ends, err := k.admin.ListEndOffsets(context.Background(), topic)
		if err != nil || ends.Error() != nil {
			return false
		}
		all := true
		have := k.commits(name)
		ends.Each(func(e kadm.ListedOffset) {
			c, ok := have.Lookup(e.Topic, e.Partition)
			all = all && (e.Offset == 0 || ok && c.At == e.Offset)
		})
		return all
	}, patience, 5*1e6)
}

// half leaves END of one of two feeders in the state of the units of copy, and stops it.
func (k *kit) half(f *fold, batch string) {
	k.t.Helper()
	in := k.run("copy", k.forward("copy"))
	k.feed(batch, "markers", 30, func(c *feeder.Config) { c.Feeders, c.Feeder, c.Run = 2, 0, "r" })
	k.drained("copy", k.topo.Source)
	require.NoError(k.t, in.stop())
}

// rest feeds what the second feeder has.
func (k *kit) rest(batch string) {
	k.feed(batch, "markers", 10, func(c *feeder.Config) { c.Feeders, c.Feeder, c.Run = 2, 1, "r" })
}

func TestTheStateTravelsWithTheCommit(t *testing.T) {
	k := setup(t, twoStages)
	f := k.follow()
	k.half(f, "b-1")
	k.commits("copy").Each(func(o kadm.OffsetResponse) { require.True(t, strings.HasPrefix(o.Metadata, "q1 "), o.Metadata) })
	s := &seen{}
	k.runAll(s)
	k.rest("b-1")
	f.completed(k, "b-1")
	b := f.completed(k, "b-1")
	n, _ := b.consumed("copy")
	require.EqualValues(t, 40, n, "what the first owner consumed is counted")
	require.Empty(t, b.verbs)
}

// A state that does not fit the metadata lies in the topic of units.
func TestALargeStateLiesInTheTopicOfUnits(t *testing.T) {
	k := setup(t, twoStages)
	f := k.follow()
	in := k.run("copy", k.forward("copy"))
	const batches = 60
	for i := range batches {
		k.feed(fmt.Sprintf("batch-with-a-long-name-%d", i), "markers", 3, func(c *feeder.Config) { c.Feeders, c.Feeder, c.Run = 2, 0, "r" })
	}
	k.drained("copy", k.topo.Source)
	require.NoError(t, in.stop())
	pointers := 0
	k.commits("copy").Each(func(o kadm.OffsetResponse) {
		require.LessOrEqual(t, len(o.Metadata), 2<<10)
		if strings.Contains(o.Metadata, " @") {
			pointers++
		}
	})
	require.Equal(t, 3, pointers)
	require.NotEmpty(t, k.records(codecs.Topic(k.prefix, codecs.TopicUnits)))
	k.runAll(&seen{})
	for i := range batches {
		k.rest(fmt.Sprintf("batch-with-a-long-name-%d", i))
	}
	for i := range batches {
		b := f.completed(k, fmt.Sprintf("batch-with-a-long-name-%d", i))
		require.Empty(t, b.verbs)
	}
}

// status writes what the controller says about a batch.
func (k *kit) status(batch string, st *codecs.BatchStatus) {
	k.t.Helper()
	rec, err := codecs.Encode(codecs.Topic(k.prefix, codecs.TopicStatus), batch, "/test", &codecs.Event{Type: codecs.TypeBatchStatus, ID: batch, Data: st})
	require.NoError(k.t, err)
	kr := &kgo.Record{Topic: rec.Topic, Key: rec.Key, Value: codecs.AppendRow(nil, codecs.RowHeader{Format: codecs.RowFormat}, rec.Value, nil)}
	for _, h := range rec.Headers {
		kr.Headers = append(kr.Headers, kgo.RecordHeader(h))
	}
	require.NoError(k.t, k.client.ProduceSync(context.Background(), kr).FirstErr())
}

// A tool that moves the offsets takes the state away: open batches that depend on units are declared inconsistent by
// name, before anything is handled; nothing ends early.
func TestAMovedOffsetMakesOpenBatchesInconsistent(t *testing.T) {
	for name, move := range map[string]func(end int64) int64{
		"forward":  func(end int64) int64 { return end },
		"backward": func(int64) int64 { return 1 },
	} {
		t.Run(name, func(t *testing.T) {
			k := setup(t, twoStages)
			f := k.follow()
			k.half(f, "b-1")
			ref := k.topo.Ref()
			k.status("b-1", &codecs.BatchStatus{Run: "r", State: codecs.State_sealed, Mode: "markers", Topology: ref})
			k.status("ledger", &codecs.BatchStatus{Run: "r", State: codecs.State_sealed, Mode: "ledger", Topology: ref})
			k.status("other", &codecs.BatchStatus{Run: "r", State: codecs.State_sealed, Mode: "markers", Topology: &codecs.TopologyRef{Name: "other"}})
			k.status("over", &codecs.BatchStatus{Run: "r", State: codecs.State_completed, Mode: "markers", Topology: ref})
			moved := kadm.Offsets{}
			k.commits("copy").Each(func(o kadm.OffsetResponse) {
				moved.AddOffset(o.Topic, o.Partition, move(o.At), -1)
			})
			_, err := k.admin.CommitOffsets(context.Background(), k.topo.Stages["copy"].Group, moved)
			require.NoError(t, err)
			k.runAll(&seen{})
			k.rest("b-1")
			f.until(k, "b-1", "declared inconsistent", func(b *folded) bool { return len(b.verbs) >= 3 })
			f.mu.Lock()
			defer f.mu.Unlock()
			require.Equal(t, "inconsistent", f.batches["b-1"].verbs[0])
			require.Contains(t, f.batches["b-1"].differences[0], "was reset to offset")
			for _, other := range []string{"ledger", "other", "over"} {
				require.Nil(t, f.batches[other], other)
			}
		})
	}
}

func TestUnitsForgetWhatIsOver(t *testing.T) {
	k := setup(t, twoStages)
	f := k.follow()
	k.half(f, "b-1")
	size := func() (n int) {
		k.commits("copy").Each(func(o kadm.OffsetResponse) { n += len(o.Metadata) })
		return n
	}
	before := size()
	k.status("b-1", &codecs.BatchStatus{Run: "r", State: codecs.State_cancelled, Mode: "markers", Topology: k.topo.Ref(), Round: 1})
	k.run("copy", k.forward("copy"))
	require.Eventually(t, func() bool {
		k.feed("b-2", "ledger", 30) // something to commit
		return size() < before-60
	}, patience, 50*1e6, "the state has %d bytes", before)
}

func TestRecordsOfNoBatch(t *testing.T) {
	k := setup(t, twoStages)
	f := k.follow()
	send := func(headers ...kgo.RecordHeader) {
		require.NoError(t, k.client.ProduceSync(context.Background(), &kgo.Record{Topic: k.topo.Source, Key: []byte("x"), Value: []byte("lost"), Headers: headers}).FirstErr())
	}
	send()
	send(kgo.RecordHeader{Key: codecs.HeaderBatch, Value: []byte("b-1")})
	send(kgo.RecordHeader{Key: codecs.HeaderControl, Value: []byte("something-new")})
	k.run("copy", k.forward("copy"))
	k.run("count", end)
	k.feed("b-1", "ledger", 10)
	b := f.completed(k, "b-1")
	require.Equal(t, map[string]int{"ok": 10}, b.counts())
	k.drained("copy", k.topo.Source) // the batch does not wait for records that are not its own
	dead := k.deadLetters()
	require.Len(t, dead, 2)
	reasons := ""
	for _, d := range dead {
		about, err := codecs.ParseDeadLetter(&d)
		require.NoError(t, err)
		require.Equal(t, k.topo.Source, about.Topic)
		reasons += about.Reason + "\n"
	}
	require.Contains(t, reasons, "record without batch headers")
	require.Contains(t, reasons, "quiesce-run")
}

func TestMixedTopics(t *testing.T) {
	k := setup(t, twoStages)
	f := k.follow()
	got := make(chan *stage.Record, 10)
	mixed := func(c *stage.Config) { c.Untagged = true }
	k.run("copy", k.forward("copy"), mixed)
	k.run("count", func(_ context.Context, r *stage.Record) ([]stage.Output, error) {
		if r.Batch == "" {
			got <- r
			return nil, fmt.Errorf("no")
		}
		return nil, nil
	}, mixed)
	require.NoError(t, k.client.ProduceSync(context.Background(), &kgo.Record{Topic: k.topo.Source, Key: []byte("x"), Value: []byte("interactive")}).FirstErr())
	r := <-got
	require.Equal(t, "interactive", string(r.Value))
	require.Empty(t, r.Headers)
	k.feed("b-1", "ledger", 10)
	b := f.completed(k, "b-1")
	require.Equal(t, map[string]int{"ok": 10}, b.counts())
	require.Eventually(t, func() bool { return len(k.deadLetters()) == 1 }, patience, 10*1e6, "it fails alone")
}
