package stats

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

const rowFormat = 1

// Row is what one partition of the events has told about one Key.
type Row struct {
	Key     Key
	Counts  *codecs.StatsRow // its sketches are empty here
	Elapsed *codecs.Sketch   // ms from start to end of jobs, steps or batches; nil = none
	Run     *codecs.Sketch   // ms that workers ran tasks
	Wait    *codecs.Sketch   // ms that tasks waited for a worker
}

func newRow(k Key) *Row {
	return &Row{Key: k, Counts: &codecs.StatsRow{Format: rowFormat, Ended: &codecs.Ends{}, Tasks: &codecs.TaskEnds{}, Hours: make([]uint64, 24)}}
}

// NewRow makes the empty row of a key that Decode made.
func (*Machine) NewRow(key string) codecs.Row {
	k, err := ParseKey(key)
	if err != nil {
		panic(err)
	}
	return newRow(k)
}

// LoadRow reads what AppendBinary wrote.
func (*Machine) LoadRow(key string, b []byte) (codecs.Row, error) {
	k, err := ParseKey(key)
	if err != nil {
		return nil, err
	}
	r := newRow(k)
	r.Counts = &codecs.StatsRow{}
	if err := proto.Unmarshal(b, r.Counts); err != nil {
		return nil, fmt.Errorf("stats row %q: %w", key, err)
	}
	c := r.Counts
	if c.Format > rowFormat {
		return nil, fmt.Errorf("stats row %q: %w: %d", key, codecs.ErrNewFormat, c.Format)
	}
	if c.Ended == nil {
		c.Ended = &codecs.Ends{}
	}
	if c.Tasks == nil {
		c.Tasks = &codecs.TaskEnds{}
	}
	c.Hours = append(c.Hours, make([]uint64, max(24-len(c.Hours), 0))...)
	for _, s := range []struct {
		from *[]byte
		to   **codecs.Sketch
	}{{&c.Elapsed, &r.Elapsed}, {&c.Run, &r.Run}, {&c.QueueWait, &r.Wait}} {
		if len(*s.from) == 0 {
			continue
		}
		*s.to = codecs.NewSketch()
		if err := (*s.to).Merge(*s.from); err != nil {
			return nil, fmt.Errorf("stats row %q: %w", key, err)
		}
		*s.from = nil
	}
	return r, nil
}

// AppendBinary appends the protobuf of the row.
func (r *Row) AppendBinary(b []byte) ([]byte, error) {
	c := r.Counts
	defer func() { c.Elapsed, c.Run, c.QueueWait = nil, nil, nil }()
	var err error
	if c.Elapsed, err = r.Elapsed.AppendBinary(nil); err != nil {
		return b, err
	}
	if c.Run, err = r.Run.AppendBinary(nil); err != nil {
		return b, err
	}
	if c.QueueWait, err = r.Wait.AppendBinary(nil); err != nil {
		return b, err
	}
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, c)
}

// String is one stable line.
func (r *Row) String() string {
	var b strings.Builder
	or := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	b.WriteString("stats ")
	if r.Key.Partition >= 0 {
		fmt.Fprintf(&b, "p%d ", r.Key.Partition)
	}
	fmt.Fprintf(&b, "%s %s %s %s", or(r.Key.Type), or(r.Key.Step), or(r.Key.Queue), or(r.Key.Date()))
	c := r.Counts
	e, t := c.Ended, c.Tasks
	for _, n := range []struct {
		name string
		n    uint64
	}{
		{"requested", c.Requested}, {"started", c.Started},
		{"completed", e.Completed}, {"completed_with_failures", e.CompletedWithFailures}, {"ended_failed", e.Failed},
		{"ended_cancelled", e.Cancelled}, {"expired", e.Expired}, {"inconsistent", e.Inconsistent},
		{"ok", t.Ok}, {"failed", t.Failed}, {"skipped", t.Skipped}, {"cancelled", t.Cancelled}, {"timed_out", t.TimedOut},
		{"lost", t.Lost}, {"unknown", t.Unknown}, {"attempts", c.Attempts}, {"bad_timings", c.BadTimings},
	} {
		if n.n > 0 {
			fmt.Fprintf(&b, " %s=%d", n.name, n.n)
		}
	}
	for _, s := range []struct {
		name string
		s    *codecs.Sketch
	}{{"elapsed", r.Elapsed}, {"run", r.Run}, {"queue_wait", r.Wait}} {
		if n := s.s.Count(); n > 0 {
			fmt.Fprintf(&b, " %s=%d/p50:%.0fms/max:%.0fms", s.name, n, s.s.Quantile(0.5), s.s.Quantile(1))
		}
	}
	return b.String()
}
