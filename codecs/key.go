package codecs

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// Partition returns the partition of a key among n: murmur2 of the key up to the first 0x00, as the Java client and
// franz-go place the keys that have none.
func Partition(key []byte, n int32) int32 { return int32(Hash(key)) % n }

// Hash is the number whose remainder is the Partition. It fits into an int32.
func Hash(key []byte) uint32 { return murmur2(BatchOf(key)) & 0x7fffffff }

// murmur2 is Austin Appleby's MurmurHash2 with the seed of Kafka's DefaultPartitioner.
func murmur2(b []byte) uint32 {
	const m = 0x5bd1e995
	h := uint32(0x9747b28c) ^ uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := binary.LittleEndian.Uint32(b) * m
		k ^= k >> 24
		h = h*m ^ k*m
	}
	switch len(b) {
	case 3:
		h ^= uint32(b[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(b[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(b[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}

// ChunkKey is the table key of chunk c of a run: batch 0x00 run 0x00 chunk (big endian, so that a prefix scan of
// batch 0x00 run 0x00 is in index order).
func ChunkKey(batch, run string, c uint32) string {
	b := make([]byte, 0, len(batch)+len(run)+6)
	b = append(append(append(append(b, batch...), 0), run...), 0)
	return string(binary.BigEndian.AppendUint32(b, c))
}

// SplitChunkKey takes a ChunkKey or OutcomeKey apart; false for any other key.
func SplitChunkKey(key string) (batch, run string, c uint32, ok bool) {
	i := strings.IndexByte(key, 0)
	if i <= 0 {
		return "", "", 0, false
	}
	j := i + 1 + strings.IndexByte(key[i+1:], 0)
	if j <= i+1 || len(key)-j != 5 {
		return "", "", 0, false
	}
	return key[:i], key[i+1 : j], binary.BigEndian.Uint32([]byte(key[j+1:])), true
}

// OutcomeKey is the key of a task in quiesce.outcomes: batch 0x00 run 0x00 index (big endian).
func OutcomeKey(batch, run string, index uint32) string { return ChunkKey(batch, run, index) }

// BatchOf returns the id that a key belongs to: the part before the first 0x00.
func BatchOf(key []byte) []byte {
	if i := bytes.IndexByte(key, 0); i >= 0 {
		return key[:i]
	}
	return key
}

// ChunkSize is the number of task indexes in one chunk row.
const ChunkSize = 1 << 16
