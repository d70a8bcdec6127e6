package processors

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/apache"
	"github.com/quiesce/quiesce/processors/batch"
)

// A fetch that is not answered, because its partition has nothing or because the broker is slow with it, holds up its own
// partition only: the others are claimed and read.
func TestPartitionsAreFetchedEachOnItsOwn(t *testing.T) {
	t.Setenv(apache.EnvBootstrap, "") // answers are held back inside the embedded broker
	d := deploy(t)
	const held = 2
	cluster := d.broker.Cluster()
	release := make(chan struct{})
	cluster.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		for _, topic := range r.(*kmsg.FetchRequest).Topics {
			for _, p := range topic.Partitions {
				if topic.Topic == d.topic(codecs.TopicControl) && p.Partition == held {
					cluster.SleepControl(func() { <-release })
				}
			}
		}
		return nil, nil, false
	})
	p, stop := d.start(d.config(batch.New(batch.Config{})))
	d.ready(p)
	ids, waiting := map[string]bool{}, ""
	for i := 0; len(ids) < 20 || waiting == ""; i++ {
		id := fmt.Sprint("b-", i)
		if codecs.Partition([]byte(id), testPartitions) == held {
			waiting = id
		} else {
			ids[id] = true
		}
		d.send(d.event(id, codecs.TypeBatchStart, &codecs.BatchStart{Run: "r", MaxTotal: 10}),
			d.event(id, codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "r", Total: 1}), d.report(id, 0))
	}
	ended := func(r *kgo.Record) (id string, yes bool) {
		for _, h := range r.Headers {
			if h.Key == codecs.HeaderID && string(h.Value) == codecs.TerminalID(string(r.Key), "r", 1) {
				return string(r.Key), true
			}
		}
		return "", false
	}
	d.read(codecs.TopicEvents, func(r *kgo.Record) bool {
		if id, yes := ended(r); yes {
			require.True(t, ids[id], "%s is on the partition that is held", id)
			delete(ids, id)
		}
		return len(ids) == 0
	})
	close(release)
	d.read(codecs.TopicEvents, func(r *kgo.Record) bool {
		id, yes := ended(r)
		return yes && id == waiting
	})
	stop()
}
