package broker

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A record batch of format 2, as far as stamping needs it (all numbers big endian):
//
//	0 base offset | 8 length | 12 leader epoch | 16 magic | 17 crc | 21 attributes | 23 last offset delta |
//	27 base timestamp | 35 max timestamp | 43 producer id, epoch, sequence | 57 record count | 61 records (compressed)
//
// The checksum (CRC-32C) covers everything from the attributes on. A record, once decompressed:
//
//	varint length of the rest | attributes (1 byte) | varint timestamp delta | offset delta, key, value, headers
const (
	atLength     = 8
	afterLength  = 12
	atMagic      = 16
	atCRC        = 17
	atAttributes = 21
	atBaseTime   = 27
	atMaxTime    = 35
	atRecords    = 61
	atCodec      = atAttributes + 1 // its low bits
	codecMask    = 0x07
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// restamper rewrites record batches. The zero value works; it is for one goroutine at a time.
type restamper struct {
	decompressor kgo.Decompressor
	compressors  map[kgo.CompressionCodecType]kgo.Compressor
}

// stamp returns the batch with every record's time at now (ms since the epoch), in batch's memory where it can. A batch
// that is not whole, or whose checksum is wrong, is returned as it is.
func (r *restamper) stamp(batch []byte, now int64) []byte {
	if len(batch) < atRecords || batch[atMagic] != 2 ||
		int(binary.BigEndian.Uint32(batch[atLength:])) != len(batch)-afterLength ||
		binary.BigEndian.Uint32(batch[atCRC:]) != crc32.Checksum(batch[atAttributes:], castagnoli) {
		return batch
	}
	codec := kgo.CompressionCodecType(batch[atCodec] & codecMask)
	plain, err := r.decompress(batch[atRecords:], codec)
	if err != nil {
		return batch
	}
	zeroed, changed, ok := zeroDeltas(plain)
	if !ok {
		return batch
	}
	if changed {
		section, codec := r.compress(zeroed, codec)
		batch = append(bytes.Clone(batch[:atRecords]), section...)
		batch[atCodec] = batch[atCodec]&^codecMask | byte(codec)
		binary.BigEndian.PutUint32(batch[atLength:], uint32(len(batch)-afterLength))
	}
	binary.BigEndian.PutUint64(batch[atBaseTime:], uint64(now))
	binary.BigEndian.PutUint64(batch[atMaxTime:], uint64(now))
	binary.BigEndian.PutUint32(batch[atCRC:], crc32.Checksum(batch[atAttributes:], castagnoli))
	return batch
}

func (r *restamper) decompress(section []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	if codec == kgo.CodecNone {
		return section, nil
	}
	if r.decompressor == nil {
		r.decompressor = kgo.DefaultDecompressor()
	}
	return r.decompressor.Decompress(section, codec)
}

// compress returns the section and the codec that it is in now: none when it would not get smaller.
func (r *restamper) compress(plain []byte, codec kgo.CompressionCodecType) ([]byte, kgo.CompressionCodecType) {
	if codec == kgo.CodecNone {
		return plain, codec
	}
	c := r.compressors[codec]
	if c == nil {
		var err error
		if c, err = kgo.DefaultCompressor(codecs[codec]); err != nil {
			return plain, kgo.CodecNone
		}
		if r.compressors == nil {
			r.compressors = map[kgo.CompressionCodecType]kgo.Compressor{}
		}
		r.compressors[codec] = c
	}
	return c.Compress(new(bytes.Buffer), plain)
}

var codecs = map[kgo.CompressionCodecType]kgo.CompressionCodec{
	kgo.CodecGzip:   kgo.GzipCompression(),
	kgo.CodecSnappy: kgo.SnappyCompression(),
	kgo.CodecLz4:    kgo.Lz4Compression(),
	kgo.CodecZstd:   kgo.ZstdCompression(),
}

// zeroDeltas returns the records with all timestamp deltas 0, and whether that changed one. Not ok: they do not decode.
func zeroDeltas(records []byte) (out []byte, changed, ok bool) {
	for at := 0; at < len(records); {
		length, n := binary.Varint(records[at:])
		end := at + n + int(length)
		if n <= 0 || length < 2 || length > int64(len(records)) || end > len(records) {
			return nil, false, false
		}
		attributes := at + n
		delta, m := binary.Varint(records[attributes+1 : end])
		if m <= 0 {
			return nil, false, false
		}
		if delta != 0 && !changed {
			changed = true
			out = append(make([]byte, 0, len(records)), records[:at]...)
		}
		if changed {
			rest := records[attributes+1+m : end]
			out = binary.AppendVarint(out, int64(2+len(rest)))
			out = append(out, records[attributes], 0)
			out = append(out, rest...)
		}
		at = end
	}
	if !changed {
		out = records
	}
	return out, changed, true
}
