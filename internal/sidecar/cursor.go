package sidecar

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Cursor holds the next offset to read of each partition of the event topic.
type Cursor map[int32]int64

// String prints "p0:o0,p1:o1,...", ordered by partition: the id of a server-sent event.
func (c Cursor) String() string {
	var b []byte
	for i, p := range slices.Sorted(maps.Keys(c)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strconv.AppendInt(b, int64(p), 10), ':')
		b = strconv.AppendInt(b, c[p], 10)
	}
	return string(b)
}

// ParseCursor reads what String prints; "" is an empty cursor.
func ParseCursor(s string) (Cursor, error) {
	c := Cursor{}
	if s == "" {
		return c, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		a, b, ok := strings.Cut(part, ":")
		p, err1 := strconv.ParseUint(a, 10, 31)
		o, err2 := strconv.ParseUint(b, 10, 63)
		if _, twice := c[int32(p)]; !ok || err1 != nil || err2 != nil || twice {
			return nil, fmt.Errorf("event id %q is not a list of <partition>:<offset>", s)
		}
		c[int32(p)] = int64(o)
	}
	return c, nil
}

// pageToken makes the opaque cursor of a list from the place to go on.
func pageToken(kind, at string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(kind + at))
}

// parsePageToken reads it back; "" is the start.
func parsePageToken(kind, token string) (string, error) {
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return "", fmt.Errorf("not a cursor of this list")
	}
	at, ok := strings.CutPrefix(string(b), kind)
	if !ok && token != "" {
		return "", fmt.Errorf("not a cursor of this list")
	}
	return at, nil
}
