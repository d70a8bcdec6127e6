package stage_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/feeder"
)

// sealed writes the status of a markers batch of the kit's topology.
func (k *kit) sealed(batch string) {
	k.status(batch, &codecs.BatchStatus{Run: "r", State: codecs.State_sealed, Mode: "markers", Topology: k.topo.Ref()})
}

// deleteBefore deletes the first n records of each partition of a topic.
func (k *kit) deleteBefore(topic string, n int64) {
	k.t.Helper()
	ends, err := k.admin.ListEndOffsets(context.Background(), topic)
	require.NoError(k.t, err)
	cut := kadm.Offsets{}
	ends.Each(func(o kadm.ListedOffset) { cut.AddOffset(o.Topic, o.Partition, min(n, o.Offset), -1) })
	_, err = k.admin.DeleteRecords(context.Background(), cut)
	require.NoError(k.t, err)
}

// Records are deleted before the stage has ever read: END is still there, and must not end the batch.
func TestRecordsDeletedBeforeTheFirstReadMakeOpenBatchesInconsistent(t *testing.T) {
	k := setup(t, twoStages)
	f := k.follow()
	k.feed("b-1", "markers", 60, func(c *feeder.Config) { c.Run = "r" })
	k.sealed("b-1")
	k.deleteBefore(k.topo.Source, 3)
	k.run("copy", k.forward("copy"))
	b := f.until(k, "b-1", "declared inconsistent", func(b *folded) bool { return len(b.verbs) == 3 })
	require.Equal(t, []string{"inconsistent", "inconsistent", "inconsistent"}, b.verbs)
	require.Contains(t, b.differences[0], "deleted unread")
}

// A reset is over once it was told: batches that start later have nothing to do with it, however often the stage starts.
func TestAResetIsToldOnce(t *testing.T) {
	k := setup(t, twoStages)
	f := k.follow()
	k.half(f, "b-1")
	moved := kadm.Offsets{}
	k.commits("copy").Each(func(o kadm.OffsetResponse) { moved.AddOffset(o.Topic, o.Partition, o.At, -1) })
	_, err := k.admin.CommitOffsets(context.Background(), k.topo.Stages["copy"].Group, moved)
	require.NoError(t, err)
	k.sealed("b-1")
	in := k.run("copy", k.forward("copy"))
	f.until(k, "b-1", "declared inconsistent", func(b *folded) bool { return len(b.verbs) == 3 })
	// A stage that is stopped between telling and committing tells it again.
	require.Eventually(t, func() bool {
		ours, committed := true, k.commits("copy")
		committed.Each(func(o kadm.OffsetResponse) { ours = ours && o.Metadata != "" })
		return ours && len(committed[k.topo.Source]) == 3
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, in.stop())

	k.sealed("b-2")
	k.runAll(&seen{})
	k.feed("b-2", "markers", 30, func(c *feeder.Config) { c.Run = "r" })
	b := f.completed(k, "b-2")
	require.Empty(t, b.verbs, "%v", b.differences)
}

// Data of a batch that is over does not open it again in the state of the unit.
func TestLateDataOfABatchThatIsOverLeavesNoTrace(t *testing.T) {
	k := setup(t, twoStages)
	in := k.run("copy", k.forward("copy"))
	k.status("b-1", &codecs.BatchStatus{Run: "r", State: codecs.State_cancelled, Mode: "markers", Topology: k.topo.Ref(), Round: 1})
	k.feed("b-1", "markers", 30, func(c *feeder.Config) { c.Feeders, c.Feeder, c.Run = 2, 0, "r" })
	k.drained("copy", k.topo.Source)
	require.NoError(t, in.stop())
	topic := codecs.Topic(k.prefix, codecs.TopicStatus) // the controller has collected it
	require.NoError(t, k.client.ProduceSync(context.Background(), &kgo.Record{Topic: topic, Key: []byte("b-1")}).FirstErr())
	in = k.run("copy", k.forward("copy"))
	k.feed("b-2", "ledger", 30)
	k.drained("copy", k.topo.Source)
	require.NoError(t, in.stop())
	k.commits("copy").Each(func(o kadm.OffsetResponse) {
		require.Less(t, len(o.Metadata), 100, "a state with nothing in it: %s", o.Metadata)
	})
}
