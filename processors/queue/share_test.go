package queue_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/quiesce/quiesce/internal/broker/brokertest"
)

// What share groups (KIP-932) do, as far as the decision against them rests on it: docs/adr/0020. When one of these
// fails, the decision can be looked at again.
func TestShareGroups(t *testing.T) {
	addr := brokertest.NeedReal(t)
	t.Run("a poll accepts what the last one returned", func(t *testing.T) {
		topic, group := shared(t, addr, 3)
		a := shareMember(t, addr, topic, group)
		require.Equal(t, "0", string(a.next(t).Value))
		require.Equal(t, "1", string(a.next(t).Value)) // two tasks at once in one process
		a.cl.Close()                                   // and its end: nobody has said that 0 is done
		b := shareMember(t, addr, topic, group)
		require.NotEqual(t, "0", string(b.next(t).Value), "it would have to come again")
	})
	t.Run("a release counts, and the fifth delivery is the last", func(t *testing.T) {
		topic, group := shared(t, addr, 2)
		a := shareMember(t, addr, topic, group)
		for n := int32(1); n <= 5; n++ {
			r := a.next(t)
			require.Equal(t, "0", string(r.Value))
			require.Equal(t, n, r.DeliveryCount(), "a release does not count")
			require.LessOrEqual(t, time.Until(r.AcquisitionDeadline()), 30*time.Second, "nor is it held for longer than that")
			r.Ack(kgo.AckRelease)
			require.NoError(t, a.cl.FlushAcks(t.Context()))
		}
		require.Equal(t, "1", string(a.next(t).Value), "0 would have to come again, or be reported")
	})
}

// shared makes a topic of one partition with n records, and a share group that reads it from its start.
func shared(t *testing.T, addr string, n int) (topic, group string) {
	t.Helper()
	topic = brokertest.Topic(t, addr, 1)
	group = "share-" + topic
	cl := brokertest.Client(t, addr)
	earliest := "earliest"
	set := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	set.Name, set.Value = "share.auto.offset.reset", &earliest
	of := kmsg.NewIncrementalAlterConfigsRequestResource()
	of.ResourceType, of.ResourceName = kmsg.ConfigResourceTypeGroupConfig, group
	of.Configs = append(of.Configs, set)
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = append(req.Resources, of)
	resp, err := req.RequestWith(t.Context(), cl)
	require.NoError(t, err)
	require.NoError(t, kerr.ErrorForCode(resp.Resources[0].ErrorCode))
	for i := range n {
		require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: fmt.Append(nil, i)}).FirstErr())
	}
	return topic, group
}

type sharer struct{ cl *kgo.Client }

func shareMember(t *testing.T, addr, topic, group string) sharer {
	t.Helper()
	return sharer{brokertest.Client(t, addr, kgo.ConsumeTopics(topic), kgo.ShareGroup(group), kgo.ShareMaxRecords(1), kgo.ShareMaxRecordsStrict())}
}

// next polls one record.
func (s sharer) next(t *testing.T) *kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		f := s.cl.PollRecords(ctx, 1)
		require.NoError(t, f.Err())
		if recs := f.Records(); len(recs) > 0 {
			require.Len(t, recs, 1)
			return recs[0]
		}
		<-time.After(time.Millisecond)
	}
}
