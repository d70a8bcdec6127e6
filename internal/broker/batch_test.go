package broker

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// makeBatch returns a whole batch of records with these timestamp deltas.
func makeBatch(t testing.TB, codec kgo.CompressionCodecType, deltas ...int64) []byte {
	t.Helper()
	var plain []byte
	for i, d := range deltas {
		var rest []byte
		rest = append(rest, 0)
		rest = binary.AppendVarint(rest, d)
		rest = binary.AppendVarint(rest, int64(i))
		rest = binary.AppendVarint(rest, -1) // no key
		rest = binary.AppendVarint(rest, 100)
		rest = append(rest, bytes.Repeat([]byte{byte(i)}, 100)...)
		rest = binary.AppendVarint(rest, 0) // no headers
		plain = append(binary.AppendVarint(plain, int64(len(rest))), rest...)
	}
	section, used := new(restamper).compress(plain, codec)
	require.Equal(t, codec, used)
	b := kmsg.RecordBatch{
		Length: int32(len(section)) + atRecords - afterLength, Magic: 2, Attributes: int16(codec) | 0x10,
		LastOffsetDelta: int32(len(deltas)) - 1, FirstTimestamp: 7, MaxTimestamp: 9, ProducerID: 11, ProducerEpoch: 12,
		FirstSequence: 13, NumRecords: int32(len(deltas)), Records: section,
	}
	out := b.AppendTo(nil)
	binary.BigEndian.PutUint32(out[atCRC:], crc32.Checksum(out[atAttributes:], castagnoli))
	return out
}

func TestStampChangesTimesOnly(t *testing.T) {
	for name, deltas := range map[string][]int64{"one": {0}, "equal": {0, 0, 0}, "ahead and behind": {0, 4e12, -5, 1}} {
		for codec := kgo.CodecNone; codec <= kgo.CodecZstd; codec++ {
			var before, after kmsg.RecordBatch
			raw := makeBatch(t, codec, deltas...)
			require.NoError(t, before.ReadFrom(bytes.Clone(raw)))
			stamped := new(restamper).stamp(raw, 1000)
			require.NoError(t, after.ReadFrom(stamped), "%s %d", name, codec)

			require.Equal(t, int32(crc32.Checksum(stamped[atAttributes:], castagnoli)), after.CRC)
			require.Equal(t, len(stamped), int(after.Length)+afterLength)
			require.Equal(t, []int64{1000, 1000}, []int64{after.FirstTimestamp, after.MaxTimestamp})
			plain, err := kgo.DefaultDecompressor().Decompress(after.Records, kgo.CompressionCodecType(after.Attributes&7))
			require.NoError(t, err)
			want, err := kgo.DefaultDecompressor().Decompress(makeBatch(t, codec, make([]int64, len(deltas))...)[atRecords:], codec)
			require.NoError(t, err)
			require.Equal(t, want, plain, "the same records with deltas of 0")

			before.FirstTimestamp, before.MaxTimestamp, before.CRC, before.Length, before.Records =
				after.FirstTimestamp, after.MaxTimestamp, after.CRC, after.Length, after.Records
			require.Equal(t, before, after, "nothing else changes")
		}
	}
}

func TestStampLeavesBrokenBatchesToTheBroker(t *testing.T) {
	whole := makeBatch(t, kgo.CodecNone, 0, 5)
	broken := map[string]func(b []byte) []byte{
		"empty":          func([]byte) []byte { return nil },
		"short":          func(b []byte) []byte { return b[:60] },
		"cut":            func(b []byte) []byte { return b[:len(b)-1] },
		"checksum":       func(b []byte) []byte { b[atCRC]++; return b },
		"old format":     func(b []byte) []byte { b[atMagic] = 1; return b },
		"record length":  func(b []byte) []byte { b[atRecords] = 0xff; return b },
		"no such codec":  func(b []byte) []byte { b[atCodec] |= 7; return b },
		"not compressed": func(b []byte) []byte { b[atCodec] |= byte(kgo.CodecZstd); return b },
	}
	for name, breakIt := range broken {
		b := breakIt(bytes.Clone(whole))
		if name != "checksum" && len(b) == len(whole) { // so that the checksum is not what is wrong
			binary.BigEndian.PutUint32(b[atCRC:], crc32.Checksum(b[atAttributes:], castagnoli))
		}
		want := bytes.Clone(b)
		require.Equal(t, want, new(restamper).stamp(b, 1000), name)
	}
}

func FuzzZeroDeltas(f *testing.F) {
	f.Add(makeBatch(f, kgo.CodecNone, 0, 0)[atRecords:])
	f.Add(makeBatch(f, kgo.CodecNone, 0, 1<<40, -3)[atRecords:])
	f.Fuzz(func(t *testing.T, records []byte) {
		out, changed, ok := zeroDeltas(records)
		if !ok {
			return
		}
		again, changedAgain, ok := zeroDeltas(out)
		if !ok || changedAgain || !bytes.Equal(out, again) {
			t.Fatalf("not settled after one pass: changed %v then %v", changed, changedAgain)
		}
	})
}
