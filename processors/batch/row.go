package batch

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

const (
	rowFormat = 1
	behaviour = 1
)

// Row is the header row of one batch id.
type Row struct {
	*codecs.BatchRow

	run  *life // of BatchRow.Run
	next *life // of BatchRow.Next

	rest     int                      // bytes of the row without counts of chunks and units, 0 = not known
	done     *codecs.SubjobsCompleted // what the next cut announces; never stored
	attempts uint64                   // of the tasks that it announces
	scratch  step                     // of the event at hand: one report allocates nothing
	one      [1]string                // what Parts returns for it
	sets     []*pending
}

// life is the counts of one run, which its row stores in packed form.
type life struct {
	*codecs.RunRow
	chunks       map[uint32]*counts
	sum          counts
	Ends         []*codecs.UnitEnd // mode markers: the units that reported
	endsCost     int               // of Ends in the row, at most
	cost, groups int               // of the counts of its chunks in the row
}

func newLife(r *codecs.RunRow) *life { return &life{RunRow: r, chunks: map[uint32]*counts{}} }

// loadLife reads the packed forms of a stored run.
func loadLife(r *codecs.RunRow) (*life, error) {
	l := newLife(r)
	if err := l.unpack(r.Counts); err != nil {
		return nil, err
	}
	if err := l.unpackEnds(); err != nil {
		return nil, err
	}
	r.Counts = nil
	return l, nil
}

// AppendBinary writes the row. The packed forms exist only while it does.
func (r *Row) AppendBinary(b []byte) ([]byte, error) {
	for _, l := range []*life{r.run, r.next} {
		if l != nil {
			l.Counts = l.packed()
			l.packEnds()
			defer l.unpacked()
		}
	}
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, r.BatchRow)
}

func (l *life) unpacked() {
	l.Counts, l.EndUnits, l.EndConsumed, l.EndFailed, l.EndAt = nil, nil, nil, nil, nil
}

// LoadRow reads what AppendBinary wrote. Fields of a later release are kept byte for byte.
func (m *Machine) LoadRow(key string, b []byte) (codecs.Row, error) {
	r := &Row{BatchRow: &codecs.BatchRow{}}
	if err := proto.Unmarshal(b, r.BatchRow); err != nil {
		return nil, fmt.Errorf("batch row %s: %w", codecs.KeyString(key), err)
	}
	if r.Format > rowFormat {
		return nil, fmt.Errorf("batch row %s: %w: %d", codecs.KeyString(key), codecs.ErrNewFormat, r.Format)
	}
	r.Batch = key
	err := r.checkLeftovers()
	if err != nil {
		return nil, fmt.Errorf("batch row %s: %w", codecs.KeyString(key), err)
	}
	if r.BatchRow.Run != nil {
		if r.run, err = loadLife(r.BatchRow.Run); err != nil {
			return nil, fmt.Errorf("batch row %s: %w", codecs.KeyString(key), err)
		}
	}
	if r.BatchRow.Next != nil {
		if r.next, err = loadLife(r.BatchRow.Next); err != nil {
			return nil, fmt.Errorf("batch row %s: %w", codecs.KeyString(key), err)
		}
	}
	return r, nil
}

// NewRow makes the empty row of a key.
func (m *Machine) NewRow(key string) codecs.Row {
	return &Row{BatchRow: &codecs.BatchRow{Format: rowFormat, Behaviour: behaviour, Batch: strings.Clone(key)}}
}

// adopt makes l the current run; nil = none.
func (r *Row) adopt(l *life) {
	r.run = l
	r.BatchRow.Run = l.RunRow
}

func (r *Row) park(l *life) {
	r.next = l
	r.BatchRow.Next = nil
	if l != nil {
		r.BatchRow.Next = l.RunRow
	}
}

// String is one stable line.
func (r *Row) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "batch %s", r.Batch)
	if r.run == nil {
		b.WriteString(" empty")
	} else {
		r.run.print(&b)
	}
	if r.next != nil {
		fmt.Fprintf(&b, " | parked run=%s reports=%d", r.next.Run, r.next.Parked)
	}
	if a := r.Audit; a.GetDuplicates()+a.GetLate()+a.GetUnexpected()+a.GetStale() > 0 {
		fmt.Fprintf(&b, " | dup=%d late=%d unexpected=%d stale=%d", a.Duplicates, a.Late, a.Unexpected, a.Stale)
	}
	return b.String()
}

func (l *life) print(b *strings.Builder) {
	fmt.Fprintf(b, " run=%s %s", l.Run, l.State)
	if l.Paused {
		b.WriteString(" paused")
	}
	if n := l.round(); n > 1 {
		fmt.Fprintf(b, " round=%d", n)
	}
	c := l.tally()
	if l.sealed() {
		fmt.Fprintf(b, " total=%d pending=%d", c.Total, c.Pending)
	}
	for _, f := range []struct {
		name string
		n    uint32
	}{{"running", c.Running}, {"ok", c.Ok}, {"failed", c.Failed}, {"skipped", c.Skipped}, {"cancelled", c.Cancelled},
		{"timed_out", c.TimedOut}, {"lost", c.Lost}, {"unknown", c.Unknown}} {
		if f.n > 0 {
			fmt.Fprintf(b, " %s=%d", f.name, f.n)
		}
	}
	if l.marked() {
		fmt.Fprintf(b, " units=%d/%d", len(l.Ends), l.units())
	}
	if l.queued() && l.State == codecs.State_sealed {
		fmt.Fprintf(b, " released=%d", l.Released)
	}
	if l.Parked > 0 {
		fmt.Fprintf(b, " reports=%d", l.Parked)
	}
	if l.Reason != "" {
		fmt.Fprintf(b, " reason=%q", l.Reason)
	}
}
