package codecs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"
)

// The partition of a key is the one that the Java client and franz-go choose for the part before the first zero byte.
func TestPartitionAgreesWithFranzGo(t *testing.T) {
	theirs := kgo.StickyKeyPartitioner(nil).ForTopic("t")
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.ByteRange(1, 255), 1, 40).Draw(t, "key")
		rest := rapid.SliceOf(rapid.Byte()).Draw(t, "rest")
		n := rapid.IntRange(1, 300).Draw(t, "partitions")
		want := theirs.Partition(&kgo.Record{Key: key}, n)
		require.EqualValues(t, want, Partition(key, int32(n)))
		require.EqualValues(t, want, Partition(append(append(key, 0), rest...), int32(n)))
	})
}

// Known values of Kafka's own test (org.apache.kafka.common.utils.UtilsTest.testMurmur2).
func TestMurmur2KnownValues(t *testing.T) {
	for s, want := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
		"a-little-bit-longer-string": -1486304829, "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971, "abc": 479470107,
	} {
		require.Equal(t, want, int32(murmur2([]byte(s))), s)
	}
}

func TestChunkKeys(t *testing.T) {
	key := ChunkKey("b-7", "01J9", 513)
	require.Equal(t, "b-7\x0001J9\x00\x00\x00\x02\x01", key)
	require.Equal(t, "b-7", string(BatchOf([]byte(key))))
	require.Less(t, ChunkKey("b", "r", 255), ChunkKey("b", "r", 256), "a prefix scan is in index order")
	batch, run, c, ok := SplitChunkKey(key)
	require.True(t, ok)
	require.Equal(t, []any{"b-7", "01J9", uint32(513)}, []any{batch, run, c})
	for _, s := range []string{"", "b", "b\x00", "b\x00r", "b\x00r\x00", "b\x00r\x00123", "b\x00r\x0012345", "\x00claim", "b\x00\x001234"} {
		_, _, _, ok := SplitChunkKey(s)
		require.False(t, ok, "%q", s)
	}
	require.Equal(t, "b-7|01J9|513", KeyString(key))
	require.Equal(t, "b-7", KeyString("b-7"))
	require.Equal(t, `acme|job-1`, KeyString("acme\x00job-1"))
	require.NotContains(t, KeyString("a\nb"), "\n")
	require.NotContains(t, KeyString("a\x00b\nc\x00d"), "\n")
}

func TestIDs(t *testing.T) {
	for s, ok := range map[string]bool{
		"a": true, "7": true, "nightly-2026-11-30": true, "a.b_c@d=e+f-g": true, strings.Repeat("x", 128): true,
		"": false, "-a": false, ".a": false, "_a": false, "a/b": false, "a:b": false, "a#b": false, "a b": false, "a\x00b": false,
		"a\n": false, "é": false, strings.Repeat("x", 129): false, "a\x7f": false,
	} {
		require.Equal(t, ok, ValidID("batch", s) == nil, "%q", s)
	}
	require.EqualError(t, ValidID("batch", "a b"), `batch id "a b": 1 to 128 of A-Z a-z 0-9 . _ @ = + -, starting with a letter or digit`)
	require.NoError(t, ValidTaskID("a file with spaces/ünd: such"))
	for _, s := range []string{"", strings.Repeat("x", 257), "\xff"} {
		require.Error(t, ValidTaskID(s))
	}
}

func TestSrc(t *testing.T) {
	s := Src{Group: "quiesce.controller", TopicID: [16]byte{0xab, 15: 0x01}, Partition: 3, Offset: 1 << 40, Index: 7}
	require.Equal(t, "quiesce.controller/ab000000000000000000000000000001/3/1099511627776/7", s.String())
	got, err := ParseSrc([]byte(s.String()))
	require.NoError(t, err)
	require.Equal(t, s, got)
	for _, bad := range []string{"", "a/b/c/d/e", "/ab000000000000000000000000000001/3/1/7", "g/zz000000000000000000000000000001/3/1/7",
		"g/ab000000000000000000000000000001/-3/1/7", "g/ab000000000000000000000000000001/3/1/7/8", "g/ab000000000000000000000000000001/3/99999999999999999999/7"} {
		_, err := ParseSrc([]byte(bad))
		require.ErrorIs(t, err, ErrData, bad)
	}
	require.Equal(t, "b/r/2/terminal", TerminalID("b", "r", 2))
}

func TestTopicID(t *testing.T) {
	id := TopicID{0xab, 15: 1}
	got, err := ParseTopicID(id.String())
	require.NoError(t, err)
	require.Equal(t, id, got)
	for _, bad := range []string{"", "ab", strings.Repeat("z", 32), strings.Repeat("a", 33)} {
		_, err := ParseTopicID(bad)
		require.Error(t, err)
	}
}

func FuzzParseSrc(f *testing.F) {
	f.Add([]byte("quiesce.controller/ab000000000000000000000000000001/3/1099511627776/7"))
	f.Add([]byte("g/00000000000000000000000000000000/0/0/+1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseSrc(b)
		if err != nil {
			return
		}
		again, err := ParseSrc([]byte(s.String()))
		require.NoError(t, err)
		require.Equal(t, s, again)
	})
}
