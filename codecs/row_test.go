package codecs

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseRowRefusesDamage(t *testing.T) {
	whole := AppendRow(nil, RowHeader{Format: RowFormat, Claim: 3, Applied: 9}, []byte("row"), []byte("outbox"))
	for n := range 22 {
		_, _, _, err := ParseRow(whole[:n])
		require.ErrorIs(t, err, ErrNotARow, "%d bytes", n)
	}
	bad := append([]byte(nil), whole...)
	bad[0] = 'x'
	_, _, _, err := ParseRow(bad)
	require.ErrorIs(t, err, ErrNotARow)
	bad = append([]byte(nil), whole[:18]...)
	_, _, _, err = ParseRow(append(bad, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01))
	require.ErrorIs(t, err, ErrNotARow, "a row longer than the record")
	for n := range 24 {
		_, err := ParsePosition(make([]byte, n))
		require.ErrorIs(t, err, ErrNotARow)
	}
	_, err = ParsePosition(append(make([]byte, 16), 0x80, 0, 0, 0, 0, 0, 0, 0))
	require.ErrorIs(t, err, ErrNotARow, "negative offset")
	require.True(t, IsReserved([]byte(ClaimKey)))
	require.False(t, IsReserved([]byte("b")))
}

func FuzzParseRow(f *testing.F) {
	f.Add(AppendRow(nil, RowHeader{Format: RowFormat, Claim: 3, Applied: 9}, []byte("row"), []byte("outbox")))
	f.Add(AppendRow(nil, RowHeader{}, nil, nil))
	pos, _ := Position{Offset: 4}.AppendBinary(nil)
	f.Add(AppendRow(nil, RowHeader{Format: RowFormat}, pos, nil))
	f.Fuzz(func(t *testing.T, v []byte) {
		h, row, outbox, err := ParseRow(v)
		if err != nil {
			return
		}
		h2, row2, outbox2, err := ParseRow(AppendRow(nil, h, row, outbox))
		require.NoError(t, err)
		require.Equal(t, []any{h, string(row), string(outbox)}, []any{h2, string(row2), string(outbox2)})
		if p, err := ParsePosition(row); err == nil {
			require.GreaterOrEqual(t, p.Offset, int64(0))
		}
	})
}
