package stats

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quiesce/quiesce/codecs"
)

const msPerDay = 24 * 60 * 60 * 1000

// Key says what a row counts. Type, Step and Queue are empty where they do not apply.
type Key struct {
	Partition int32 // of the events topic; -1 in merged rows
	Type      string
	Step      string
	Queue     string
	Day       int64 // since 1970-01-01, UTC; -1 in rows merged over days
}

// String is the key of the row in the table.
func (k Key) String() string {
	return fmt.Sprintf("%d\x00%s\x00%s\x00%s\x00%d", k.Partition, k.Type, k.Step, k.Queue, k.Day)
}

// ParseKey reads what String prints.
func ParseKey(s string) (Key, error) {
	f := strings.Split(s, "\x00")
	if len(f) != 5 {
		return Key{}, fmt.Errorf("stats row %q: not partition, type, step, queue, day", s)
	}
	p, err1 := strconv.ParseInt(f[0], 10, 32)
	day, err2 := strconv.ParseInt(f[4], 10, 64)
	if err := cmp.Or(err1, err2); err != nil {
		return Key{}, fmt.Errorf("stats row %q: %w", s, err)
	}
	return Key{Partition: int32(p), Type: f[1], Step: f[2], Queue: f[3], Day: day}, nil
}

// Date is the day as 2006-01-02; "" in rows merged over days.
func (k Key) Date() string {
	if k.Day < 0 {
		return ""
	}
	return time.UnixMilli(k.Day * msPerDay).UTC().Format(time.DateOnly)
}

// compare orders by type, step, queue, day, partition.
func (k Key) compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Type, o.Type), cmp.Compare(k.Step, o.Step), cmp.Compare(k.Queue, o.Queue),
		cmp.Compare(k.Day, o.Day), cmp.Compare(k.Partition, o.Partition))
}

// IsHeader says that every row of the table is a header row: the keys contain 0x00 and there are no parts.
func IsHeader(string) bool { return true }

// keyOf is the row that an event counts in.
func keyOf(ev *codecs.Event) Key {
	k := Key{Partition: ev.Partition, Day: max(ev.Time, 0) / msPerDay}
	switch d := ev.Data.(type) {
	case *codecs.JobRequested:
		k.Type = name(d.Type)
	case *codecs.JobEvent:
		k.Type, k.Step, k.Queue = name(d.Type), optional(d.Step), optional(d.Queue)
	case *codecs.SubjobsCompleted:
		k.Queue = optional(d.Queue)
		if d.Owner.GetJob() != "" {
			k.Type, k.Step = name(d.Owner.Type), optional(d.Owner.Step)
		}
	}
	return k
}

// name is an id as it stands in a key, "_" for what is none.
func name(s string) string {
	if codecs.ValidID("name", s) != nil {
		return "_"
	}
	return s
}

func optional(s string) string {
	if s == "" {
		return ""
	}
	return name(s)
}
