package codecs

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
)

// String is one stable line: type, key, id, where it differs from the usual, and the data as JSON.
func (ev *Event) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", ev.Type, visible(ev.Key))
	if ev.Subject != "" && ev.Subject != ev.Key {
		fmt.Fprintf(&b, " subject=%s", visible(ev.Subject))
	}
	if ev.ID != "" {
		fmt.Fprintf(&b, " id=%s", visible(ev.ID))
	}
	b.WriteByte(' ')
	b.WriteString(dataString(ev.Data))
	return b.String()
}

// String is one stable line: topic, type, key, and the data as JSON.
func (m *Message) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s", m.Topic, m.Type, visible(m.Key))
	if m.ID != "" {
		fmt.Fprintf(&b, " id=%s", visible(m.ID))
	}
	if m.Due {
		b.WriteString(" due")
	}
	b.WriteByte(' ')
	b.WriteString(dataString(m.Data))
	return b.String()
}

func dataString(m proto.Message) string {
	if m == nil {
		return "null"
	}
	b, err := JSON(m)
	if err != nil {
		return "!" + err.Error()
	}
	return string(b)
}

// visible prints a key: ids as they are, chunk keys as batch|run|number, anything else quoted where it must be.
func visible(s string) string {
	if isID(s) {
		return s
	}
	if batch, run, c, ok := SplitChunkKey(s); ok && isID(batch) && isID(run) {
		return fmt.Sprintf("%s|%s|%d", batch, run, c)
	}
	parts := strings.Split(s, "\x00")
	for i, p := range parts {
		if q := strconv.Quote(p); q != `"`+p+`"` {
			parts[i] = q
		}
	}
	return strings.Join(parts, "|")
}

// KeyString prints any record or table key on one line.
func KeyString(key string) string { return visible(key) }
