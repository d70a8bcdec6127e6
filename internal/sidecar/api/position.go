package api

import (
	"fmt"
	"strconv"
	"strings"
)

// Position is the place of a control record: "<partition>:<offset>".
type Position struct {
	Partition int32
	Offset    int64
}

// String prints what ParsePosition reads.
func (p Position) String() string {
	return strconv.FormatInt(int64(p.Partition), 10) + ":" + strconv.FormatInt(p.Offset, 10)
}

// ParsePosition reads "<partition>:<offset>", both decimal and not negative.
func ParsePosition(s string) (Position, error) {
	a, b, ok := strings.Cut(s, ":")
	p, err1 := strconv.ParseUint(a, 10, 31)
	o, err2 := strconv.ParseUint(b, 10, 63)
	if !ok || err1 != nil || err2 != nil {
		return Position{}, fmt.Errorf("position %q is not <partition>:<offset>", s)
	}
	return Position{int32(p), int64(o)}, nil
}

// MarshalText makes a position a JSON string.
func (p Position) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what MarshalText prints.
func (p *Position) UnmarshalText(b []byte) (err error) {
	*p, err = ParsePosition(string(b))
	return err
}
