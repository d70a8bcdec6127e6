package batch

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/quiesce/quiesce/codecs"
)

// past is every version of every row, by key.
type past map[string][]stored

// note remembers the rows that the last event wrote.
func (p past) note(e *env) {
	for key, s := range e.rows {
		if v := p[key]; len(v) == 0 || v[len(v)-1].applied < s.applied {
			p[key] = append(v, s)
		}
	}
}

// at returns the last version of a row that has no offset above o.
func (p past) at(key string, o int64) (s stored, ok bool) {
	v := p[key]
	i := sort.Search(len(v), func(i int) bool { return v[i].applied > o })
	if i == 0 {
		return s, false
	}
	return v[i-1], true
}

// drawHistory applies a history, noting every version of every row.
func drawHistory(rt *rapid.T, e *env, events int) past {
	e.m.rooms.header = rapid.OneOf(rapid.IntRange(100, 400), rapid.Just(1<<20)).Draw(rt, "room of the header")
	c := drawScene(rt)
	versions := past{}
	for range rapid.IntRange(3, events).Draw(rt, "events") {
		e.now += rapid.SampledFrom(dt).Draw(rt, "dt")
		typ, data := c.event(rt)
		e.eachStep = func() { versions.note(e) }
		e.step(typ, data)
	}
	return versions
}

// TestReplayOfAnyCut: whatever a crash left behind, with parts older than their header, the replay from the position
// gives the rows that there would have been without it, and says nothing else: not even when it crashes again.
func TestReplayOfAnyCut(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e := newEnv(t, mutants{})
		versions := drawHistory(rt, e, 30)
		last := int64(len(e.history)) - 1
		head := rapid.Int64Range(0, last).Draw(rt, "header at")
		from := rapid.Int64Range(0, head).Draw(rt, "position") // everything below is durable
		again := newEnv(t, mutants{})
		again.m.rooms = e.m.rooms
		for key := range versions {
			at := head
			if key != e.batch {
				at = rapid.Int64Range(from-1, head).Draw(rt, "chunk at")
			}
			if s, ok := versions.at(key, at); ok {
				again.rows[key] = s
			}
		}
		for crashes := 0; ; crashes++ {
			until := last
			if crashes == 0 {
				until = rapid.Int64Range(from, last).Draw(rt, "crash again at")
			}
			for _, rec := range e.history[from : until+1] {
				again.offset = rec.Offset + 1
				var said []codecs.Message
				again.feed(rec, func(m codecs.Message) { said = append(said, m) })
				if rec.Offset > head {
					requireSame(rt, e.said[rec.Offset], said)
				}
			}
			if head = max(head, until); until == last {
				break
			}
		}
		for key, want := range e.rows {
			if !e.header().counts(key) {
				continue // of a run that is over: it no longer matters
			}
			got := again.rows[key]
			if !bytes.Equal(want.bytes, got.bytes) {
				rt.Fatalf("%q: header at %d, position %d\nwant %s\n got %s\n%s", key, head, from, e.show(key), again.show(key), e.log())
			}
		}
	})
}

func requireSame(t *rapid.T, want, got []codecs.Message) {
	same := len(want) == len(got)
	for i := 0; same && i < len(want); i++ {
		w, g := want[i], got[i]
		same = w.Topic == g.Topic && w.Type == g.Type && w.ID == g.ID && w.Key == g.Key && proto.Equal(w.Data, g.Data)
	}
	if !same {
		t.Fatalf("said\n%v\nnow\n%v", want, got)
	}
}

// TestPartsAreNamedAlike: for every event and every later header, the header sends the event to each chunk that it
// changed the first time, as long as the header counts it, and to no chunk that it would change now and did not then.
func TestPartsAreNamedAlike(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e := newEnv(t, mutants{})
		requireNamedAlike(rt, e, drawHistory(rt, e, 40))
	})
}

func requireNamedAlike(t *rapid.T, e *env, versions past) {
	for _, head := range versions[e.batch] {
		row, err := e.m.LoadRow(e.batch, head.bytes)
		require.NoError(t, err)
		for off := int64(0); off <= head.applied; off++ {
			e.requireNamed(t, versions, row.(*Row), head.applied, off)
		}
	}
}

// requireNamed looks at one event and one header that has it.
func (e *env) requireNamed(t *rapid.T, versions past, h *Row, head, off int64) {
	var ev codecs.Event
	require.NoError(t, e.m.Decode(&e.history[off], &ev))
	named := slices.Clone(e.m.Parts(h, off, &ev))
	for key := range versions {
		if key == e.batch || !h.counts(key) {
			continue
		}
		before, then := versions.bytes(e, key, off-1), versions.bytes(e, key, off)
		if !slices.Contains(named, key) {
			if !bytes.Equal(before, then) {
				t.Fatalf("header of %d does not send %d to %q\n%s", head, off, key, e.log())
			}
			continue
		}
		c, err := e.m.LoadPart(key, before)
		require.NoError(t, err)
		e.m.StepPart(c, off, &ev)
		now, err := c.AppendBinary(nil)
		require.NoError(t, err)
		if !bytes.Equal(now, then) {
			t.Fatalf("header of %d: %d gives %q another state than then\n%s", head, off, key, e.log())
		}
	}
}

// TestParkedPartsAreNamedAlike is the same of reports before START that name more chunks than there is room for.
func TestParkedPartsAreNamedAlike(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e := newEnv(t, mutants{})
		e.m.rooms.parked = rapid.IntRange(153, 157).Draw(rt, "room")
		versions := past{}
		e.eachStep = func() { versions.note(e) }
		for range rapid.IntRange(2, 12).Draw(rt, "events") {
			if rapid.IntRange(0, 9).Draw(rt, "what") == 0 {
				e.start(&codecs.BatchStart{Feeders: 2, MaxTotal: 1 << 30})
				continue
			}
			c := uint32(rapid.IntRange(0, 3).Draw(rt, "chunk"))
			d := reportOf("r", uint32(rapid.IntRange(0, 1).Draw(rt, "feeder")), 1, codecs.NewItem(c<<16, (c+uint32(rapid.SampledFrom([]int{0, 1, 148, 150}).Draw(rt, "more")))<<16, codecs.OK))
			e.step(codecs.TypeBatchReport, d)
		}
		requireNamedAlike(rt, e, versions)
	})
}

// bytes are those of a chunk as of an offset, of the empty chunk where there is none.
func (p past) bytes(e *env, key string, o int64) []byte {
	if s, ok := p.at(key, o); ok {
		return s.bytes
	}
	b, err := e.m.NewPart(key).AppendBinary(nil)
	require.NoError(e.t, err)
	return b
}

// counts says that a row is the header, or a chunk that it counts.
func (r *Row) counts(key string) bool {
	if key == r.Batch {
		return true
	}
	for _, l := range []*life{r.run, r.next} {
		if l != nil && l.chunks[chunkID(key)] != nil && codecs.ChunkKey(r.Batch, l.Run, chunkID(key)) == key {
			return true
		}
	}
	return false
}

func (e *env) show(key string) string {
	if key == e.batch {
		return e.header().String() + "\n" + e.header().BatchRow.String()
	}
	return e.chunk(key).String()
}

// log prints the history.
func (e *env) log() string {
	var b bytes.Buffer
	for _, rec := range e.history {
		var ev codecs.Event
		_ = codecs.Decode(&rec, &ev)
		fmt.Fprintf(&b, "%d t=%d %s %v\n", rec.Offset, rec.Time, ev.Type, ev.Data)
	}
	return b.String()
}

// TestReaderAgreesWithHeader: what a reader derives from the chunks is what the header counts, at any time.
func TestReaderAgreesWithHeader(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawScene(rt)
		e := newEnv(t, mutants{})
		ends := map[string]bool{}
		for range rapid.IntRange(3, 30).Draw(rt, "events") {
			e.now += rapid.SampledFrom(dt).Draw(rt, "dt")
			typ, data := c.event(rt)
			before := len(e.ends)
			h := e.step(typ, data)
			for _, id := range e.ends[before:] {
				require.False(t, ends[id], "twice: %s\n%s", id, e.log())
				ends[id] = true
			}
			s, ok := h.Snapshot()
			if !ok || !s.Sealed || s.State == codecs.State_collected {
				continue
			}
			var got [outcomes]uint32
			running, missing := uint32(0), uint32(0)
			for _, ref := range h.Chunks(0, 0, 1000) {
				var ch *Chunk
				if _, ok := e.rows[ref.Key]; ok {
					ch = e.chunk(ref.Key)
				}
				h.Tasks(ref, ch, 0, func(t Task) bool {
					got[t.Outcome]++
					if t.Running {
						running++
					}
					return true
				})
				h.Missing(ref, ch, 0, func(sp Span) bool { missing += sp.Last - sp.First + 1; return true })
			}
			want := s.Counts
			if h.run.marked() { // units say how many of their records failed, and cannot name them
				require.Equal(t, want.Failed+want.Unknown, got[codecs.Failed]+got[codecs.Unknown], "%s\n%s", h, e.log())
				got[codecs.Failed] = want.Failed
			}
			require.Equal(t, []uint32{want.Pending + want.Running, want.Running, want.Ok, want.Failed, want.Skipped, want.Cancelled, want.TimedOut, want.Lost},
				[]uint32{missing, running, got[codecs.OK], got[codecs.Failed], got[codecs.Skipped], got[codecs.Cancelled], got[codecs.TimedOut], got[codecs.Lost]},
				"%s\n%s", h, e.log())
		}
	})
}

// namedAgain are the parts that the header as it stands names for a record of the past.
func (e *env) namedAgain(off int64) []string {
	var ev codecs.Event
	require.NoError(e.t, e.m.Decode(&e.history[off], &ev))
	return e.m.Parts(e.header(), off, &ev)
}

// A report that was stale because two runs were known already stays so when its run becomes known later.
func TestStaleStaysStale(t *testing.T) {
	e := newEnv(t, mutants{})
	e.start(&codecs.BatchStart{})
	e.step(codecs.TypeBatchReport, reportOf("s", 0, 1, codecs.NewItem(0, 0, codecs.OK)))
	stale := int64(len(e.history))
	e.step(codecs.TypeBatchReport, reportOf("u", 0, 1, codecs.NewItem(0, 0, codecs.OK)))
	require.Equal(t, uint64(1), e.header().Audit.Stale)
	e.start(&codecs.BatchStart{Run: "s", ReuseOpen: "supersede"})
	require.Empty(t, e.namedAgain(stale), "u is free to be parked, but was not then")
	e.step(codecs.TypeBatchReport, reportOf("u", 0, 1, codecs.NewItem(1, 1, codecs.OK)))
	require.Equal(t, "u", e.header().next.Run)
	require.Empty(t, e.namedAgain(stale), "u is parked, but was not then")
}

// An index above N at its time stays unexpected when N grows later.
func TestUnexpectedStaysUnexpected(t *testing.T) {
	e := newEnv(t, mutants{})
	e.start(&codecs.BatchStart{Queue: "q", OpenChildren: true})
	e.seal(2)
	early := int64(len(e.history))
	e.round(1, 5, 5, codecs.OK)
	d := reportOf("r", 0, 1, codecs.NewItem(0, 0, codecs.OK))
	d.Children = &codecs.Children{Count: 5}
	r := e.step(codecs.TypeBatchReport, d)
	require.Equal(t, uint32(7), r.run.total())
	require.Empty(t, e.namedAgain(early))
	require.NotEmpty(t, e.namedAgain(int64(len(e.history))-1))
	e.round(1, 1, 4, codecs.OK)
	require.Equal(t, uint32(2), e.header().run.tally().Pending, "5 and 6")
}
