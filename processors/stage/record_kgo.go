package stage

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// fromKgo is the client-free form of a fetched record. Key, value and header values are shared.
func fromKgo(k *kgo.Record) codecs.Record {
	r := codecs.Record{Topic: k.Topic, Partition: k.Partition, Offset: k.Offset, Time: k.Timestamp.UnixMilli(), Key: k.Key, Value: k.Value}
	if len(k.Headers) > 0 {
		r.Headers = make([]codecs.Header, len(k.Headers))
		for i, h := range k.Headers {
			r.Headers[i] = codecs.Header(h)
		}
	}
	return r
}

// toKgo is a record to produce; partition -1 leaves the choice to partitioner.
func toKgo(r *codecs.Record) *kgo.Record {
	k := &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value}
	if len(r.Headers) > 0 {
		k.Headers = make([]kgo.RecordHeader, len(r.Headers))
		for i, h := range r.Headers {
			k.Headers[i] = kgo.RecordHeader(h)
		}
	}
	return k
}

// partitioner sends a record where it says, or where its key belongs.
func partitioner() kgo.Partitioner {
	return kgo.BasicConsistentPartitioner(func(string) func(*kgo.Record, int) int {
		return func(r *kgo.Record, n int) int {
			if r.Partition >= 0 {
				return int(r.Partition)
			}
			return int(codecs.Partition(r.Key, int32(n)))
		}
	})
}
