package table_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/table"
	"github.com/quiesce/quiesce/processors/batch"
)

// A cut writes a header before its chunks. Who reads between the two must wait for the rest, not answer that everything is
// missing which the chunk does not know yet.
func TestReadersWaitForTheRestOfACut(t *testing.T) {
	addr, prefix := brokertest.Bootstrap(t), fmt.Sprintf("t%d", time.Now().UnixNano())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	c := brokertest.Client(t, addr)
	topic := codecs.Table(prefix, codecs.GroupController)
	for _, name := range []string{topic, codecs.Topic(prefix, codecs.TopicOutcomes)} {
		_, err := kadm.NewClient(c).CreateTopic(ctx, 1, -1, nil, name)
		require.NoError(t, err)
	}
	v, err := table.New(table.Config{Bootstrap: []string{addr}, Prefix: prefix, DataDir: t.TempDir()})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- v.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	require.Eventually(t, func() bool { return v.Readiness().OK }, waitLong, tick)

	header, chunk := foldBatch(t, "b-1", &codecs.BatchStart{Run: "r"}, &codecs.BatchSeal{Run: "r", Total: 10},
		&codecs.BatchReport{Run: "r", Items: []*codecs.ReportItem{codecs.NewItem(0, 6, codecs.OK)}})
	put := func(key string, row []byte) {
		value := codecs.AppendRow(nil, codecs.RowHeader{Format: codecs.RowFormat, Applied: 2}, row, nil)
		require.NoError(t, c.ProduceSync(ctx, &kgo.Record{Topic: topic, Key: []byte(key), Value: value}).FirstErr())
	}
	put("b-1", header)
	require.Eventually(t, func() bool { b, err := v.Get("b-1"); return err == nil && b.Counts.OK == 7 }, waitLong, tick)
	answer := make(chan sidecar.MissingPage, 1)
	go func() {
		page, err := v.Missing("b-1", sidecar.Place{}, 10)
		if err != nil {
			t.Error(err)
		}
		answer <- page
	}()
	select {
	case page := <-answer:
		require.Fail(t, "answered from half a cut", "%+v", page.Ranges)
	case <-time.After(100 * time.Millisecond):
	}
	put(codecs.ChunkKey("b-1", "r", 0), chunk)
	page := <-answer
	require.Len(t, page.Ranges, 1)
	require.Equal(t, [2]uint32{7, 9}, [2]uint32{page.Ranges[0].First, page.Ranges[0].Last})
	tasks, err := v.Tasks("b-1", []string{"ok"}, sidecar.Place{Index: 5}, 10)
	require.NoError(t, err)
	require.Len(t, tasks.Tasks, 2)
}

// foldBatch runs events through the machine and returns the header and the first chunk as a cut would write them.
func foldBatch(t *testing.T, id string, events ...proto.Message) (header, chunk []byte) {
	t.Helper()
	m := batch.New(batch.Config{})
	row, parts := m.NewRow(id), map[string]codecs.Row{}
	types := map[string]string{"BatchStart": codecs.TypeBatchStart, "BatchSeal": codecs.TypeBatchSeal, "BatchReport": codecs.TypeBatchReport}
	for i, data := range events {
		ev := &codecs.Event{Type: types[string(data.ProtoReflect().Descriptor().Name())], Key: id, Time: 1_790_000_000_000 + int64(i), Data: data}
		var touched []codecs.Row
		for _, key := range m.Parts(row, int64(i), ev) {
			if parts[key] == nil {
				parts[key] = m.NewPart(key)
			}
			m.StepPart(parts[key], int64(i), ev)
			touched = append(touched, parts[key])
		}
		m.Step(row, touched, int64(i), ev, nil)
	}
	var err error
	header, err = row.AppendBinary(nil)
	require.NoError(t, err)
	chunk, err = parts[codecs.ChunkKey(id, "r", 0)].AppendBinary(nil)
	require.NoError(t, err)
	return header, chunk
}
