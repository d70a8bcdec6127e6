package stage

import (
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// The headers of both record types are the same struct under two names: the conversions below compile only while that
// is so, and make it right to look at a slice of one as a slice of the other. It saves a copy for each record.
var (
	_ = codecs.Header(kgo.RecordHeader{})
	_ = kgo.RecordHeader(codecs.Header{})
)

func headersFromKgo(h []kgo.RecordHeader) []codecs.Header {
	return unsafe.Slice((*codecs.Header)(unsafe.Pointer(unsafe.SliceData(h))), len(h))
}

func headersToKgo(h []codecs.Header) []kgo.RecordHeader {
	return unsafe.Slice((*kgo.RecordHeader)(unsafe.Pointer(unsafe.SliceData(h))), len(h))
}

// fromKgo is the client-free form of a fetched record. Key, value and headers are shared.
func fromKgo(k *kgo.Record) codecs.Record {
	return codecs.Record{Topic: k.Topic, Partition: k.Partition, Offset: k.Offset, Time: k.Timestamp.UnixMilli(), Key: k.Key,
		Value: k.Value, Headers: headersFromKgo(k.Headers)}
}

// toKgo is a record to produce; partition -1 leaves the choice to partitioner.
func toKgo(r *codecs.Record) *kgo.Record {
	return &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Headers: headersToKgo(r.Headers)}
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
