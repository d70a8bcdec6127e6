package replay

import (
	"bytes"
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

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
)

// bench is a deployment of the counter machine on a broker of its own, or on the real one: topics, and a client that
// writes to partitions.
type bench struct {
	t         testing.TB
	bootstrap string
	prefix    string
	opts      []kgo.Opt
	client    *kgo.Client
	admin     *kadm.Client
}

var deployments atomic.Int64

// setup creates the topics control, counter-table, other (of two partitions more), empty, events and dead-letter.
func setup(t testing.TB, partitions int32) *bench {
	addr := brokertest.Bootstrap(t)
	cl := brokertest.Client(t, addr, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	b := &bench{t: t, bootstrap: addr, prefix: fmt.Sprintf("replay-%d-%d", os.Getpid(), deployments.Add(1)),
		opts: []kgo.Opt{kgo.SeedBrokers(strings.Split(addr, ",")...)}, client: cl, admin: kadm.NewClient(cl)}
	compact := "compact"
	for name, n := range map[string]int32{"control": partitions, "counter-table": partitions, "other": partitions + 2, "empty": partitions,
		"events": partitions, "dead-letter": 1} {
		configs := map[string]*string{}
		if name == "counter-table" {
			configs["cleanup.policy"] = &compact
		}
		_, err := b.admin.CreateTopic(context.Background(), n, 1, configs, b.name(name))
		require.NoError(t, err)
	}
	for _, name := range []string{"control", "counter-table", "other", "empty", "events", "dead-letter"} {
		require.Eventually(t, func() bool {
			_, err := OpenLive(context.Background(), LiveConfig{Client: b.opts, Topic: b.name(name)})
			return err == nil
		}, time.Minute, 20*time.Millisecond, name)
	}
	return b
}

func (b *bench) name(topic string) string { return codecs.Topic(b.prefix, topic) }

// send writes records to the partitions that they name, and returns the offset of the last.
func (b *bench) send(topic string, recs ...*codecs.Record) int64 {
	var last int64
	for _, rec := range recs {
		out := &kgo.Record{Topic: b.name(topic), Partition: rec.Partition, Key: rec.Key, Value: rec.Value}
		for _, h := range rec.Headers {
			out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		r, err := b.client.ProduceSync(context.Background(), out).First()
		require.NoError(b.t, err)
		last = r.Offset
	}
	return last
}

func (b *bench) open(topic string) *Live {
	l, err := OpenLive(context.Background(), LiveConfig{Client: b.opts, Topic: b.name(topic)})
	require.NoError(b.t, err)
	return l
}

func TestRecordAndFoldALiveTopic(t *testing.T) {
	b := setup(t, 3)
	b.send("control", everything(t).records...)
	live := b.open("control")
	b.send("control", newLog(t, 3).report("b-9", "w", 1)) // after it was opened: not part of it
	require.EqualValues(t, 23, live.Len())
	var first, second bytes.Buffer
	n, err := Record(context.Background(), live, &first, nil)
	require.NoError(t, err)
	require.EqualValues(t, 23, n)
	_, err = Record(context.Background(), live, &second, nil)
	require.NoError(t, err)
	require.Equal(t, first.String(), second.String())

	file := writeFile(t, first.String())
	require.Equal(t, live.Topic(), file.Topic())
	fromFile, t1 := fold(t, file)
	fromLive, t2 := fold(t, live)
	require.Equal(t, rowsOf(t, fromFile), rowsOf(t, fromLive))
	require.Equal(t, t1, t2)
	src, _ := everything(t).file()
	made, _ := fold(t, src)
	require.Equal(t, rowsOf(t, made), rowsOf(t, fromLive))
}

func TestRecordAnEmptyTopic(t *testing.T) {
	b := setup(t, 2)
	var out bytes.Buffer
	n, err := Record(context.Background(), b.open("empty"), &out, nil)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Equal(t, 1, strings.Count(out.String(), "\n"))
	require.EqualValues(t, 2, writeFile(t, out.String()).Topic().Partitions)
}

func TestOpenLiveFaults(t *testing.T) {
	b := setup(t, 1)
	_, err := OpenLive(context.Background(), LiveConfig{Client: b.opts, Topic: b.name("none")})
	require.ErrorContains(t, err, b.name("none"))
	_, err = OpenLive(context.Background(), LiveConfig{})
	require.ErrorContains(t, err, "no topic")
}

// Transactions leave markers in the log: no records, but offsets, also at its end.
func TestRecordSkipsTransactionMarkers(t *testing.T) {
	b := setup(t, 1)
	cl, err := kgo.NewClient(append(b.opts, kgo.TransactionalID(b.name("tx")), kgo.DefaultProduceTopic(b.name("control")))...)
	require.NoError(t, err)
	defer cl.Close()
	for range 2 {
		require.NoError(t, cl.BeginTransaction())
		require.NoError(t, cl.ProduceSync(context.Background(), &kgo.Record{Key: []byte("b"), Value: []byte("v")}).FirstErr())
		require.NoError(t, cl.EndTransaction(context.Background(), kgo.TryCommit))
	}
	live := b.open("control")
	require.EqualValues(t, 4, live.Len(), "two records, two markers")
	var out bytes.Buffer
	n, err := Record(context.Background(), live, &out, nil)
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
}

func TestIntoAnotherDeployment(t *testing.T) {
	b := setup(t, 3)
	src, _ := everything(t).file()
	n, err := Into(context.Background(), IntoConfig{Source: src, Client: b.opts, Topic: b.name("other")})
	require.NoError(t, err)
	require.Equal(t, Copied{Sent: 16, Nudges: 5, Misplaced: 2}, n)
	target := b.open("other")
	require.EqualValues(t, 16, target.Len())
	order := map[string][]string{}
	require.NoError(t, src.Each(context.Background(), func(rec *codecs.Record) error {
		id, _ := rec.Header(codecs.HeaderID)
		if codecs.Partition(rec.Key, 3) == rec.Partition && len(rec.Key) > 0 && !strings.Contains(string(id), "/") {
			order[string(rec.Key)] = append(order[string(rec.Key)], string(id)+string(rec.Value))
		}
		return nil
	}))
	got := map[string][]string{}
	require.NoError(t, target.Each(context.Background(), func(rec *codecs.Record) error {
		if len(rec.Key) == 0 {
			return nil
		}
		require.Equal(t, codecs.Partition(rec.Key, 5), rec.Partition)
		_, moved := rec.Header(codecs.HeaderMoved)
		require.False(t, moved)
		id, _ := rec.Header(codecs.HeaderID)
		got[string(rec.Key)] = append(got[string(rec.Key)], string(id)+string(rec.Value))
		return nil
	}))
	require.Equal(t, order, got, "the records of a key keep their order")
}

func TestIntoRefuses(t *testing.T) {
	b := setup(t, 1)
	b.send("control", newLog(t, 1).report("b", "w", 1))
	_, err := Into(context.Background(), IntoConfig{Source: b.open("control"), Client: b.opts, Topic: b.name("control")})
	require.ErrorContains(t, err, "the target is the source")
	_, err = Into(context.Background(), IntoConfig{Source: b.open("control"), Client: b.opts, Topic: b.name("none")})
	require.ErrorContains(t, err, b.name("none"))
	_, err = Into(context.Background(), IntoConfig{})
	require.ErrorContains(t, err, "no source")
	large := newLog(t, 1)
	large.put(0, codecs.Record{Key: []byte("b"), Value: make([]byte, 2<<20)})
	src, _ := large.file()
	_, err = Into(context.Background(), IntoConfig{Source: src, Client: b.opts, Topic: b.name("other")})
	require.ErrorContains(t, err, "source partition 0, offset 0")
}
