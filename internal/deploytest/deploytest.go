// Package deploytest gives tests a deployment of its own: topics on the test's broker, machines over them, and the wire.
package deploytest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/internal/topics"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/topology"
)

const (
	// Partitions of all topics.
	Partitions = 2
	// Queue is a queue that the deployment has.
	Queue    = "q"
	patience = 60 * time.Second
)

var number atomic.Int64

type running struct {
	*processors.Processor
	input string
}

// Deployment is one prefix on one broker.
type Deployment struct {
	Bootstrap []string
	Prefix    string
	Client    *kgo.Client // for the test's own use; it ends with the test
	t         testing.TB
	running   []running
	sent      int
	events    <-chan *codecs.Event
	seen      map[string][]*codecs.Event // by type and subject
}

// New makes the topics.
func New(t testing.TB) *Deployment {
	t.Helper()
	addr := brokertest.Bootstrap(t)
	d := &Deployment{t: t, Bootstrap: strings.Split(addr, ","), Prefix: fmt.Sprintf("d%d-%d", os.Getpid(), time.Now().UnixNano()+number.Add(1)),
		Client: brokertest.Client(t, addr, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0)), seen: map[string][]*codecs.Event{}}
	m, err := topics.New(topics.Config{Client: d.Client})
	require.NoError(t, err)
	_, err = m.Apply(context.Background(), topology.Settings{Prefix: d.Prefix, Partitions: Partitions,
		Queues: []topology.Queue{{Name: Queue, Partitions: Partitions}}}.System())
	require.NoError(t, err)
	d.events = d.Follow(codecs.TopicEvents)
	return d
}

// Run runs machines until the test ends or stop is called.
func (d *Deployment) Run(machines ...processors.Machine) (stop func()) {
	d.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var done []chan error
	for _, m := range machines {
		p, err := processors.New(processors.Config{Bootstrap: d.Bootstrap, Prefix: d.Prefix, Machine: m, DataDir: d.t.TempDir(),
			Logger: slog.New(slog.DiscardHandler), Timing: processors.Timing{Backoff: 5 * time.Millisecond, Idle: 50 * time.Millisecond}})
		require.NoError(d.t, err)
		d.running = append(d.running, running{p, m.Input()})
		ended := make(chan error, 1)
		done = append(done, ended)
		go func() { ended <- p.Run(ctx) }()
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		for _, ended := range done {
			require.NoError(d.t, <-ended)
		}
	}
	d.t.Cleanup(stop)
	return stop
}

// Topic is the whole name of a topic.
func (d *Deployment) Topic(name string) string { return codecs.Topic(d.Prefix, name) }

// Send writes one event to a logical topic, on the partition of its key.
func (d *Deployment) Send(topic, key, typ string, data proto.Message) {
	d.t.Helper()
	d.Put(codecs.Partition([]byte(key), Partitions), d.Record(topic, key, typ, data))
}

// Record is an event with an id of its own.
func (d *Deployment) Record(topic, key, typ string, data proto.Message) *codecs.Record {
	d.t.Helper()
	d.sent++
	rec, err := codecs.Encode(d.Topic(topic), key, codecs.Source(d.Prefix, "test"), &codecs.Event{Type: typ, ID: fmt.Sprint("test/", d.sent), Data: data})
	require.NoError(d.t, err)
	return &rec
}

// Put writes a record to a partition.
func (d *Deployment) Put(partition int32, rec *codecs.Record) {
	d.t.Helper()
	k := &kgo.Record{Topic: rec.Topic, Partition: partition, Key: rec.Key, Value: rec.Value}
	for _, h := range rec.Headers {
		k.Headers = append(k.Headers, kgo.RecordHeader(h))
	}
	require.NoError(d.t, d.Client.ProduceSync(context.Background(), k).FirstErr())
}

// Await returns the n-th event of a type about a subject.
func (d *Deployment) Await(typ, subject string, n int) *codecs.Event {
	d.t.Helper()
	key := typ + " " + subject
	for len(d.seen[key]) < n {
		select {
		case ev := <-d.events:
			k := ev.Type + " " + ev.Subject
			d.seen[k] = append(d.seen[k], ev)
		case <-time.After(patience):
			d.t.Fatalf("event %d %s of %s did not come", n, typ, subject)
		}
	}
	return d.seen[key][n-1]
}

// Settled waits until the machines have taken all that their topics hold.
func (d *Deployment) Settled() {
	d.t.Helper()
	admin := kadm.NewClient(d.Client)
	for _, p := range d.running {
		require.Eventually(d.t, func() bool {
			status := p.Status()
			if len(status) != Partitions {
				return false
			}
			for _, s := range status {
				ends, err := admin.ListEndOffsets(context.Background(), d.Topic(p.input))
				if err != nil || ends.Error() != nil {
					return false
				}
				end, _ := ends.Lookup(d.Topic(p.input), s.Partition)
				if s.Err != nil || s.Written != end.Offset {
					return false
				}
			}
			return true
		}, patience, 20*time.Millisecond, "%s did not come to the end of its log", p.input)
	}
}

// Follow decodes a topic from its start, until the test ends.
func (d *Deployment) Follow(topic string) <-chan *codecs.Event {
	cl := brokertest.Client(d.t, strings.Join(d.Bootstrap, ","), kgo.ConsumeTopics(d.Topic(topic)), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	out := make(chan *codecs.Event, 100_000)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			cl.PollFetches(ctx).EachRecord(func(k *kgo.Record) {
				rec := codecs.Record{Topic: k.Topic, Partition: k.Partition, Offset: k.Offset, Key: k.Key, Value: k.Value}
				for _, h := range k.Headers {
					rec.Headers = append(rec.Headers, codecs.Header(h))
				}
				ev := &codecs.Event{}
				if err := codecs.Decode(&rec, ev); err == nil {
					out <- ev
				}
			})
		}
	}()
	d.t.Cleanup(func() { cancel(); <-done })
	return out
}
