package codecs

import (
	"context"
	"testing"

	"github.com/IBM/sarama"
	kafka "github.com/cloudevents/sdk-go/protocol/kafka_sarama/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/stretchr/testify/require"
)

// The CloudEvents SDK's Kafka binding reads every record of ours as a valid event in binary mode.
func TestCloudEventsBinding(t *testing.T) {
	for _, json := range []bool{false, true} {
		for _, ev := range samples() {
			ev.Traceparent = goodTrace
			rec, err := (&Encoder{Source: "/quiesce/q/c", JSON: json}).Encode("q.events", "b-7", &ev)
			require.NoError(t, err)
			if ev.ID == "" {
				continue // the runtime names it
			}
			cm := &sarama.ConsumerMessage{Topic: rec.Topic, Key: rec.Key, Value: rec.Value}
			for _, h := range rec.Headers {
				cm.Headers = append(cm.Headers, &sarama.RecordHeader{Key: []byte(h.Key), Value: h.Value})
			}
			m := kafka.NewMessageFromConsumerMessage(cm)
			require.Equal(t, binding.EncodingBinary, m.ReadEncoding())
			ce, err := binding.ToEvent(context.Background(), m)
			require.NoError(t, err)
			require.NoError(t, ce.Validate(), ev.Type)
			require.Equal(t, "1.0", ce.SpecVersion())
			require.Equal(t, ev.ID, ce.ID())
			require.Equal(t, "/quiesce/q/c", ce.Source())
			require.Equal(t, "quiesce."+ev.Type+".v1", ce.Type())
			require.Equal(t, "b-7", ce.Subject())
			require.Equal(t, map[bool]string{true: ContentJSON, false: ContentProtobuf}[json], ce.DataContentType())
			require.Equal(t, string(rec.Value), string(ce.Data()))
		}
	}
}
