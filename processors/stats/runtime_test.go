package stats_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/stats"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, append(brokertest.Singletons(), goleak.IgnoreAnyFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"))...)
}

const partitions = 4

type bundle struct {
	bootstrap, prefix, dir string
	client                 *kgo.Client
	sent                   [partitions]int64
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{bootstrap: brokertest.Embedded(t).Bootstrap(), prefix: "s", dir: t.TempDir()}
	b.client = brokertest.Client(t, b.bootstrap, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	compact, appended := "compact", "LogAppendTime"
	for name, c := range map[string]map[string]*string{
		codecs.Topic(b.prefix, codecs.TopicEvents):     {"message.timestamp.type": &appended},
		codecs.Topic(b.prefix, codecs.TopicDeadLetter): {},
		codecs.Table(b.prefix, codecs.GroupStats):      {"cleanup.policy": &compact},
	} {
		_, err := kadm.NewClient(b.client).CreateTopic(context.Background(), partitions, -1, c, name)
		require.NoError(t, err)
	}
	return b
}

func (b *bundle) start(t *testing.T) (p *processors.Processor, stop func()) {
	t.Helper()
	p, err := processors.New(processors.Config{Bootstrap: []string{b.bootstrap}, Prefix: b.prefix, Machine: stats.New(), DataDir: b.dir, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	return p, func() { cancel(); require.NoError(t, <-done) }
}

// send appends subjobs.completed event n, as the machine that read offset n of a partition would have emitted it.
func (b *bundle) send(t *testing.T, n int) {
	t.Helper()
	from := int32(n % partitions)
	at := int32(n / 3 % partitions) // where it lands; not the partition of its key
	rec, err := codecs.Encode(codecs.Topic(b.prefix, codecs.TopicEvents), fmt.Sprint("b", n%5), "/t", &codecs.Event{
		Type: codecs.TypeSubjobsCompleted, ID: fmt.Sprint(n), Src: codecs.Src{Group: "c", Partition: from*partitions + at, Offset: int64(n)},
		Data: &codecs.SubjobsCompleted{Run: "r", Items: []*codecs.ReportItem{codecs.NewItem(uint32(n), uint32(n), codecs.OK)},
			Owner: &codecs.Owner{Job: "j", Step: "s", Type: "t"}, Queue: "q", Attempts: 2}})
	require.NoError(t, err)
	k := &kgo.Record{Topic: rec.Topic, Partition: at, Key: rec.Key, Value: rec.Value}
	for _, h := range rec.Headers {
		k.Headers = append(k.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	require.NoError(t, b.client.ProduceSync(context.Background(), k).FirstErr())
	b.sent[at]++
}

func (b *bundle) settled(t *testing.T, p *processors.Processor) {
	t.Helper()
	require.Eventually(t, func() bool {
		n := 0
		for _, st := range p.Status() {
			if st.Err == nil && st.Written == b.sent[st.Partition] {
				n++
			}
		}
		return n == partitions
	}, time.Minute, 10*time.Millisecond)
}

// rows reads the table as a reader does: through a view.
func (b *bundle) rows(t *testing.T) (rows []*stats.Row) {
	t.Helper()
	v, err := processors.NewView(processors.ViewConfig{Bootstrap: []string{b.bootstrap}, Prefix: b.prefix, Machine: stats.New(),
		Header: stats.IsHeader, DataDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = v.Run(ctx) }()
	defer func() { cancel(); <-done }()
	var page []processors.ViewRow
	require.Eventually(t, func() bool { page, _, err = v.Scan("", 1000); return err == nil }, time.Minute, 10*time.Millisecond)
	for _, r := range page {
		rows = append(rows, r.Row.(*stats.Row))
	}
	return rows
}

func TestExactOverRestartsAndRepeats(t *testing.T) {
	b := setup(t)
	const n = 210
	p, stop := b.start(t)
	for i := range n {
		b.send(t, i)
		if i%7 == 0 {
			b.send(t, i)
		}
		switch i {
		case n / 3: // in the middle of a cut
			stop()
		case n / 2: // what came meanwhile is read after the restart
			p, stop = b.start(t)
		}
	}
	b.settled(t, p)
	stop()
	rows := b.rows(t)
	require.GreaterOrEqual(t, len(rows), partitions, "every partition has rows of its own")
	all := stats.Merge(rows, stats.Overall)
	require.Len(t, all, 1)
	s := all[0].Snapshot()
	require.Equal(t, [3]string{"t", "s", "q"}, [3]string{s.Type, s.Step, s.Queue})
	require.EqualValues(t, n, s.Tasks.OK)
	require.EqualValues(t, n, s.Tasks.Ended)
	require.EqualValues(t, 2*n, s.Tasks.Attempts)
}
