package processors

import (
	"errors"
	"fmt"
	"hash"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"

	"github.com/quiesce/quiesce/codecs"
)

// What goka wants to have and this runtime does itself.

var errOwn = errors.New("the runtime does this itself")

// verifier is goka's topic manager: it creates nothing. Topics exist and are checked before goka starts.
type verifier struct{ partitions map[string]int32 }

func (v verifier) EnsureTableExists(topic string, n int) error  { return v.ensure(topic, n) }
func (v verifier) EnsureStreamExists(topic string, n int) error { return v.ensure(topic, n) }
func (v verifier) EnsureTopicExists(topic string, n, _ int, _ map[string]string) error {
	return v.ensure(topic, n)
}

func (v verifier) ensure(topic string, n int) error {
	if had := v.partitions[topic]; int(had) != n {
		return fmt.Errorf("topic %s has %d partitions, %d are needed", topic, had, n)
	}
	return nil
}

// Partitions implements goka.TopicManager.
func (v verifier) Partitions(topic string) ([]int32, error) {
	var ids []int32
	for i := range v.partitions[topic] {
		ids = append(ids, i)
	}
	return ids, nil
}

// GetOffset says that the table is as long as the store says it is (table.GetOffset): goka has nothing to load.
func (v verifier) GetOffset(_ string, _ int32, at int64) (int64, error) {
	if at == sarama.OffsetOldest {
		return 0, nil
	}
	return 1, nil
}

func (v verifier) Close() error { return nil }

// mute is goka's producer.
type mute struct{}

func (mute) Emit(string, string, []byte) *goka.Promise { return refused() }
func (mute) EmitWithHeaders(string, string, []byte, goka.Headers) *goka.Promise {
	return refused()
}
func (mute) Close() error { return nil }

func refused() *goka.Promise {
	p, finish := goka.NewPromiseWithFinisher()
	finish(nil, errOwn)
	return p
}

// deaf is goka's consumer of tables.
type deaf struct{}

func (deaf) Topics() ([]string, error)          { return nil, errOwn }
func (deaf) Partitions(string) ([]int32, error) { return nil, errOwn }
func (deaf) ConsumePartition(string, int32, int64) (sarama.PartitionConsumer, error) {
	return nil, errOwn
}
func (deaf) HighWaterMarks() map[string]map[int32]int64 { return nil }
func (deaf) Close() error                               { return nil }
func (deaf) Pause(map[string][]int32)                   {}
func (deaf) Resume(map[string][]int32)                  {}
func (deaf) PauseAll()                                  {}
func (deaf) ResumeAll()                                 {}

// raw is goka's codec: bytes.
type raw struct{}

func (raw) Encode(v any) ([]byte, error) { return v.([]byte), nil }
func (raw) Decode(b []byte) (any, error) { return b, nil }

// Hasher is the hash of goka processors, views and emitters that agree with codecs.Partition.
func Hasher() hash.Hash32 { return &hasher{} }

type hasher struct{ key []byte }

func (h *hasher) Write(b []byte) (int, error) { h.key = append(h.key, b...); return len(b), nil }
func (h *hasher) Sum32() uint32               { return codecs.Hash(h.key) }
func (h *hasher) Sum(b []byte) []byte {
	s := h.Sum32()
	return append(b, byte(s>>24), byte(s>>16), byte(s>>8), byte(s))
}
func (h *hasher) Reset()         { h.key = h.key[:0] }
func (h *hasher) Size() int      { return 4 }
func (h *hasher) BlockSize() int { return 4 }
