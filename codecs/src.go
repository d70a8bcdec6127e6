package codecs

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// String is the form of ce_id for machine outputs and of the quiesce-src header:
// <group>/<input topic id, 32 hex digits>/<partition>/<offset>/<index>.
func (s Src) String() string {
	b := make([]byte, 0, len(s.Group)+64)
	b = append(append(b, s.Group...), '/')
	b = append(hex.AppendEncode(b, s.TopicID[:]), '/')
	b = append(strconv.AppendInt(b, int64(s.Partition), 10), '/')
	b = append(strconv.AppendInt(b, s.Offset, 10), '/')
	return string(strconv.AppendInt(b, int64(s.Index), 10))
}

// ParseSrc reads what String prints.
func ParseSrc(b []byte) (Src, error) {
	f := strings.Split(string(b), "/")
	if len(f) != 5 || f[0] == "" || len(f[1]) != 32 {
		return Src{}, fmt.Errorf("%w: source %q", ErrData, b)
	}
	s := Src{Group: f[0]}
	if _, err := hex.Decode(s.TopicID[:], []byte(f[1])); err != nil {
		return Src{}, fmt.Errorf("%w: source %q: %w", ErrData, b, err)
	}
	p, err1 := strconv.ParseInt(f[2], 10, 32)
	o, err2 := strconv.ParseInt(f[3], 10, 64)
	i, err3 := strconv.ParseInt(f[4], 10, 32)
	if err1 != nil || err2 != nil || err3 != nil || p < 0 || o < 0 || i < 0 {
		return Src{}, fmt.Errorf("%w: source %q", ErrData, b)
	}
	s.Partition, s.Offset, s.Index = int32(p), o, int32(i)
	return s, nil
}

// TerminalID is the ce_id of the one terminal event of a round of a run.
func TerminalID(batch, run string, round uint32) string {
	return fmt.Sprintf("%s/%s/%d/terminal", batch, run, round)
}
