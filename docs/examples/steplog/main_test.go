package main

import (
	"bufio"
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

func TestALineForEachFinishedStep(t *testing.T) {
	bootstrap := brokertest.Embedded(t, broker.Topic{Name: "p.events", Partitions: 2}).Bootstrap()
	client := brokertest.Client(t, bootstrap)
	send := func(typ string, data proto.Message) {
		rec, err := codecs.Encode("p.events", "j1", "/t", &codecs.Event{Type: typ, ID: typ, Data: data})
		require.NoError(t, err)
		k := &kgo.Record{Topic: rec.Topic, Key: rec.Key, Value: rec.Value}
		for _, h := range rec.Headers {
			k.Headers = append(k.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		require.NoError(t, client.ProduceSync(context.Background(), k).FirstErr())
	}
	send(codecs.TypeStepStarted, &codecs.JobEvent{Job: "j1", Step: "s1"})
	require.NoError(t, client.ProduceSync(context.Background(), &kgo.Record{Topic: "p.events", Key: []byte("j1"), Value: []byte("junk")}).FirstErr())
	send(codecs.TypeStepCompleted, &codecs.JobEvent{Job: "j1", Step: "s1", StepState: codecs.StepState_completed, StartedAt: 1000, EndedAt: 2500})
	send(codecs.TypeJobStarted, &codecs.JobEvent{Job: "j1"})
	send(codecs.TypeStepCompleted, &codecs.JobEvent{Job: "j1", Step: "s2", StepState: codecs.StepState_failed, StartedAt: 2500, EndedAt: 2510})

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := run(ctx, w, bootstrap, "p")
		w.Close()
		done <- err
	}()
	lines := bufio.NewScanner(r)
	for _, want := range []string{"j1 s1 completed 1.5s", "j1 s2 failed 10ms"} {
		require.True(t, lines.Scan(), "%v", lines.Err())
		require.Equal(t, want, lines.Text())
	}
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}
