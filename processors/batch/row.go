package batch

import (
	"fmt"
	"slices"
	"sort"
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

	done     *codecs.SubjobsCompleted // what the next cut announces; never stored
	attempts uint64                   // of the tasks that it announces
	scratch  step                     // of the event at hand: one report allocates nothing
	one      [1]string                // what Parts returns for it
	sets     []*pending
}

// life is the counts of one run, which its row stores in packed form.
type life struct {
	*codecs.RunRow
	chunks map[uint32]*counts
	sum    counts
}

// counts of one chunk, or of all.
type counts struct {
	n       [outcomes]uint32
	running uint32
	key     string // of its row, where it was asked for
}

func (c *counts) ended() uint32 {
	t := uint32(0)
	for _, n := range c.n {
		t += n
	}
	return t
}

// reopen forgets what a new round runs again.
func (c *counts) reopen() {
	c.running = 0
	for o := range c.n {
		if reopened[o] {
			c.n[o] = 0
		}
	}
}

func (c *counts) failures() uint32 {
	return c.n[codecs.Failed] + c.n[codecs.TimedOut] + c.n[codecs.Lost]
}

// set replaces the counts of one chunk: absolute values, so that seeing a chunk twice changes nothing.
func (l *life) set(id uint32, c counts) {
	old := l.chunks[id]
	if old == nil {
		old = &counts{}
		l.chunks[id] = old
	}
	for o := range c.n {
		l.sum.n[o] += c.n[o] - old.n[o]
	}
	l.sum.running += c.running - old.running
	c.key = old.key
	*old = c
}

func newLife(r *codecs.RunRow) *life {
	l := &life{RunRow: r, chunks: map[uint32]*counts{}}
	id := uint32(0)
	for i, gap := range r.ChunkGaps {
		id += gap
		c := counts{}
		if i < len(r.ChunkOks) {
			c.n[codecs.OK] = r.ChunkOks[i]
		}
		l.set(id, c)
	}
	for _, o := range r.Others {
		c := counts{running: o.Started}
		if old := l.chunks[o.Id]; old != nil {
			c.n[codecs.OK] = old.n[codecs.OK]
		}
		c.n[codecs.Failed], c.n[codecs.Skipped], c.n[codecs.Cancelled] = o.Failed, o.Skipped, o.Cancelled
		c.n[codecs.TimedOut], c.n[codecs.Lost], c.n[codecs.Unknown] = o.TimedOut, o.Lost, o.Unknown
		l.set(o.Id, c)
	}
	return l
}

// ids returns the chunk ids in order.
func (l *life) ids() []uint32 {
	ids := make([]uint32, 0, len(l.chunks))
	for id := range l.chunks {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// pack writes the counts into the row.
func (l *life) pack() {
	l.ChunkGaps, l.ChunkOks, l.Others = l.ChunkGaps[:0], l.ChunkOks[:0], l.Others[:0]
	before := uint32(0)
	for _, id := range l.ids() {
		c := l.chunks[id]
		l.ChunkGaps = append(l.ChunkGaps, id-before)
		l.ChunkOks = append(l.ChunkOks, c.n[codecs.OK])
		before = id
		if c.ended() == c.n[codecs.OK] && c.running == 0 {
			continue
		}
		l.Others = append(l.Others, &codecs.ChunkCounts{Id: id, Failed: c.n[codecs.Failed], Skipped: c.n[codecs.Skipped],
			Cancelled: c.n[codecs.Cancelled], TimedOut: c.n[codecs.TimedOut], Lost: c.n[codecs.Lost],
			Unknown: c.n[codecs.Unknown], Started: c.running})
	}
}

// AppendBinary writes the row.
func (r *Row) AppendBinary(b []byte) ([]byte, error) {
	for _, l := range []*life{r.run, r.next} {
		if l != nil {
			l.pack()
		}
	}
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, r.BatchRow)
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
	if r.BatchRow.Run != nil {
		r.run = newLife(r.BatchRow.Run)
	}
	if r.BatchRow.Next != nil {
		r.next = newLife(r.BatchRow.Next)
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

// sortEnds keeps the units that reported in order, so that equal sets are equal rows.
func (l *life) addEnd(e *codecs.UnitEnd) bool {
	i := sort.Search(len(l.Ends), func(i int) bool { return l.Ends[i].Unit >= e.Unit })
	if i < len(l.Ends) && l.Ends[i].Unit == e.Unit {
		return false
	}
	l.Ends = slices.Insert(l.Ends, i, e)
	return true
}
