package batch

import (
	"bytes"
	"fmt"
	"sort"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/quiesce/quiesce/codecs"
)

// indexes around the edges of chunks.
var edges = []uint32{0, 1, 2, 5, 9, 10, 65_534, 65_535, 65_536, 65_537, 131_071, 131_072, 131_080}

// drawEvent draws any event of the control topic, sensible or not.
func drawEvent(t *rapid.T, c *casting) (string, proto.Message) {
	run := rapid.SampledFrom([]string{"r", "r", "r", "s", "u"}).Draw(t, "run")
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return codecs.TypeBatchStart, c.start(t, run)
	case 1:
		n := rapid.SampledFrom(edges).Draw(t, "total")
		return codecs.TypeBatchSeal, &codecs.BatchSeal{Run: run, Total: n, Feeder: rapid.Uint32Range(0, c.feeders-1).Draw(t, "feeder")}
	case 2:
		verb := rapid.SampledFrom([]string{"cancel", "pause", "resume", "redrive", "redrive", "extend", "policy", "reevaluate", "gc"}).Draw(t, "verb")
		args := &codecs.CommandArgs{Window: 3, Deadlines: &codecs.Deadlines{NoProgressFor: 700}}
		return codecs.TypeBatchCommand, &codecs.BatchCommand{Id: fmt.Sprint(rapid.IntRange(0, 60).Draw(t, "id")), Verb: verb, Args: args}
	case 3:
		return codecs.TypeBatchNudge, &codecs.BatchNudge{}
	}
	return codecs.TypeBatchReport, c.report(t, run)
}

// casting is what stays the same over one history.
type casting struct {
	feeders, legs uint32
	children      bool
	queue         string
}

func (c *casting) start(t *rapid.T, run string) *codecs.BatchStart {
	d := &codecs.BatchStart{Run: run, Feeders: c.feeders, Queue: c.queue, Window: 2, OpenChildren: c.children,
		ReuseOpen:  rapid.SampledFrom([]string{"", "supersede"}).Draw(t, "reuse"),
		OnDeadline: rapid.SampledFrom([]string{"", "close"}).Draw(t, "on deadline"),
		Deadlines:  &codecs.Deadlines{CompleteWithin: 2500, NoProgressFor: 900},
		MaxTotal:   rapid.SampledFrom([]uint32{0, 131_072}).Draw(t, "max total")}
	for i := range c.legs {
		if c.legs > 1 {
			d.Legs = append(d.Legs, &codecs.Leg{Stage: fmt.Sprint("s", i), Topic: "t"})
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "policy") == 0 {
		d.Policy = &codecs.Policy{Kind: "tolerate", Tolerate: "3"}
	}
	return d
}

func (c *casting) report(t *rapid.T, run string) *codecs.BatchReport {
	d := &codecs.BatchReport{Run: run, Round: rapid.SampledFrom([]uint32{0, 1, 2, 2, 3}).Draw(t, "round"), Legs: c.legs,
		Feeder: rapid.Uint32Range(0, c.feeders-1).Draw(t, "feeder")}
	for range rapid.IntRange(1, 2).Draw(t, "items") {
		o := rapid.SampledFrom([]codecs.Outcome_Code{codecs.OK, codecs.OK, codecs.OK, codecs.Failed, codecs.Skipped, codecs.Lost, codecs.Outcome_unspecified}).Draw(t, "outcome")
		a, b := rapid.SampledFrom(edges).Draw(t, "a"), rapid.SampledFrom(edges).Draw(t, "b")
		it := codecs.NewItem(min(a, b), max(a, b), o)
		if rapid.Bool().Draw(t, "set") {
			set, err := roaring.BitmapOf(a, b, a/2).ToBytes()
			require.NoError(t, err)
			it = &codecs.ReportItem{Bitmap: set, Outcome: o}
		}
		it.Leg = rapid.Uint32Range(0, c.legs-1).Draw(t, "leg")
		d.Items = append(d.Items, it)
	}
	if c.children && rapid.IntRange(0, 3).Draw(t, "children") == 0 {
		d.Children = &codecs.Children{Count: 3}
	}
	return d
}

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

// TestReplayOfAnyCut: whatever a crash left behind, with parts older than their header, the replay from the position
// gives the rows that there would have been without it.
func TestReplayOfAnyCut(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := &casting{feeders: rapid.Uint32Range(1, 2).Draw(rt, "feeders"), legs: rapid.Uint32Range(1, 2).Draw(rt, "legs")}
		if rapid.Bool().Draw(rt, "queue") {
			c.queue, c.feeders = "q", 1
			c.children = rapid.Bool().Draw(rt, "open children")
		}
		e := newEnv(t, mutants{})
		versions := past{}
		for range rapid.IntRange(3, 25).Draw(rt, "events") {
			e.now += rapid.SampledFrom([]int64{0, 1, 100, 400, 1000}).Draw(rt, "dt")
			typ, data := drawEvent(rt, c)
			e.step(typ, data)
			versions.note(e)
		}
		last := int64(len(e.history)) - 1
		head := rapid.Int64Range(0, last).Draw(rt, "header at")
		from := rapid.Int64Range(0, head).Draw(rt, "position") // everything below is durable
		again := newEnv(t, mutants{})
		for key := range versions {
			at := head
			if key != e.batch {
				at = rapid.Int64Range(from-1, head).Draw(rt, "chunk at")
			}
			if s, ok := versions.at(key, at); ok {
				again.rows[key] = s
			}
		}
		for _, rec := range e.history[from:] {
			again.offset = rec.Offset + 1
			again.feed(rec, func(codecs.Message) {})
		}
		for key, want := range e.rows {
			if !e.header().counts(key) {
				continue // of a run that is over: it no longer matters
			}
			got := again.rows[key]
			require.True(t, bytes.Equal(want.bytes, got.bytes), "%q: header at %d, position %d\nwant %s\n got %s\n%s", key, head, from,
				e.show(key), again.show(key), e.log())
		}
	})
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
		c := &casting{feeders: rapid.Uint32Range(1, 2).Draw(rt, "feeders"), legs: rapid.Uint32Range(1, 2).Draw(rt, "legs")}
		e := newEnv(t, mutants{})
		ends := map[string]bool{}
		for range rapid.IntRange(3, 30).Draw(rt, "events") {
			e.now += rapid.SampledFrom([]int64{0, 1, 100, 400, 1000}).Draw(rt, "dt")
			typ, data := drawEvent(rt, c)
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
			require.Equal(t, []uint32{want.Pending + want.Running, want.Running, want.Ok, want.Failed, want.Skipped, want.Cancelled, want.TimedOut, want.Lost},
				[]uint32{missing, running, got[codecs.OK], got[codecs.Failed], got[codecs.Skipped], got[codecs.Cancelled], got[codecs.TimedOut], got[codecs.Lost]},
				"%s\n%s", h, e.log())
		}
	})
}
