package batch

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/quiesce/quiesce/codecs"
)

// bytesOf is the size of a row, which keeps its bound.
func (e *env) bytesOf(r codecs.Row) int {
	e.t.Helper()
	b, err := r.AppendBinary(nil)
	require.NoError(e.t, err)
	require.LessOrEqual(e.t, len(b), e.m.MaxRowBytes(), "%s", r)
	return len(b)
}

// TestMixedOutcomesOfABillion: every chunk of the largest batch has some tasks of each kind, and the header keeps its
// bound; one kind too many for it ends the batch as INCONSISTENT, not as a row that nobody can write.
func TestMixedOutcomesOfABillion(t *testing.T) {
	const n = 1_000_000_000
	e := newEnv(t, mutants{})
	e.cached = map[string]codecs.Row{}
	e.start(&codecs.BatchStart{MaxTotal: n, Labels: map[string]string{"a": strings.Repeat("b", 1000)}})
	e.seal(n)
	const chunks = (n + 65_535) >> 16
	each := func(outs ...codecs.Outcome_Code) {
		for c := range uint32(chunks) {
			var items []*codecs.ReportItem
			for i, o := range outs {
				items = append(items, codecs.NewItem(c<<16+uint32(i)*100, c<<16+uint32(i)*100+99, o))
			}
			e.step(codecs.TypeBatchReport, &codecs.BatchReport{Run: "r", Items: items})
			delete(e.cached, codecs.ChunkKey("b", "r", c)) // the test keeps no chunks
		}
	}
	each(codecs.OK, codecs.Failed, codecs.Skipped, codecs.TimedOut, codecs.Lost, codecs.Outcome_unspecified)
	require.Equal(t, codecs.State_sealed, e.header().run.State)
	t.Logf("header row of %d chunks with six kinds: %d bytes", chunks, e.bytesOf(e.header()))

	each(codecs.OK, codecs.Failed, codecs.Skipped, codecs.TimedOut, codecs.Lost, codecs.Cancelled, codecs.Unknown, codecs.Outcome_unspecified)
	require.Equal(t, codecs.State_inconsistent, e.header().run.State)
	require.Contains(t, e.header().run.Reason, "too large")
	require.Equal(t, []string{"b/r/1/terminal"}, e.ends)
	for i := range 100 { // what comes after the end has its room, too
		e.command(strings.Repeat("c", 100)+fmt.Sprint(i), "cancel", nil)
	}
	e.step(codecs.TypeBatchReport, reportOf("next", 0, 1, codecs.NewItem(0, DefaultMaxTotal-1, codecs.Failed)))
	e.bytesOf(e.header())
}

// TestMixedOutcomesOfLegs: sixteen legs fit a chunk; sixteen legs that say something else of every task do not, and the
// batch says so.
func TestMixedOutcomesOfLegs(t *testing.T) {
	all := []codecs.Outcome_Code{codecs.OK, codecs.Failed, codecs.Skipped, codecs.Cancelled, codecs.TimedOut, codecs.Lost}
	for name, c := range map[string]struct {
		outs []codecs.Outcome_Code
		want codecs.State_Code
	}{
		"all ok in random order": {all[:1], codecs.State_sealed},
		"at random":              {all, codecs.State_inconsistent},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, mutants{})
			legs := make([]*codecs.Leg, codecs.MaxLegs)
			for i := range legs {
				legs[i] = &codecs.Leg{Stage: fmt.Sprint("s", i), Topic: "t"}
			}
			e.start(&codecs.BatchStart{Legs: legs})
			e.seal(codecs.ChunkSize + 1)
			rnd := rand.New(rand.NewPCG(1, 2))
			for range 4 { // a fourth of the tasks at a time, as bitmaps
				for leg := range uint32(codecs.MaxLegs) {
					sets := map[codecs.Outcome_Code]*roaring.Bitmap{}
					for range codecs.ChunkSize / 4 {
						o := c.outs[rnd.IntN(len(c.outs))]
						if sets[o] == nil {
							sets[o] = roaring.New()
						}
						sets[o].Add(rnd.Uint32N(codecs.ChunkSize))
					}
					d := &codecs.BatchReport{Run: "r", Legs: codecs.MaxLegs}
					for _, o := range all {
						if sets[o] == nil {
							continue
						}
						b, err := sets[o].ToBytes()
						require.NoError(t, err)
						d.Items = append(d.Items, &codecs.ReportItem{Bitmap: b, Leg: leg, Outcome: o})
					}
					e.step(codecs.TypeBatchReport, d) // the rows are written, and their bound is looked at
				}
			}
			r := e.header()
			require.Equal(t, c.want, r.run.State, r.run.Reason)
			if c.want == codecs.State_inconsistent {
				require.Contains(t, r.run.Reason, "too large")
			}
			t.Logf("chunk of %d legs: %d bytes", codecs.MaxLegs, len(e.rows[codecs.ChunkKey("b", "r", 0)].bytes))
		})
	}
}

// TestEveryUnitReports: as many units as START may name, each with what it consumed, fit the header.
func TestEveryUnitReports(t *testing.T) {
	const each = codecs.MaxUnits / 4
	e := newEnv(t, mutants{})
	e.cached = map[string]codecs.Row{}
	var units []*codecs.UnitSet
	for i := range 4 {
		units = append(units, &codecs.UnitSet{Stage: fmt.Sprint("a-stage-with-a-long-name-", i), Topic: "a-topic-with-a-long-name", Partitions: each})
	}
	e.start(&codecs.BatchStart{Mode: "markers", Units: units, MaxTotal: 1_000_000_000})
	e.seal(1_000_000_000)
	for i, u := range units {
		for p := range uint32(each) {
			e.now += 5000
			r := e.step(codecs.TypeBatchEnd, &codecs.BatchEnd{Run: "r", Consumed: 1_000_000_000, Failed: 1,
				Unit: &codecs.Unit{Stage: u.Stage, Topic: u.Topic, Partition: p}})
			require.Equal(t, i < 3 || p < each-1, r.run.State == codecs.State_sealed)
		}
	}
	r := e.header()
	require.Equal(t, codecs.State_completed_with_failures, r.run.State)
	require.Equal(t, uint32(codecs.MaxUnits), r.run.tally().Failed)
	t.Logf("header row of %d units: %d bytes", codecs.MaxUnits, e.bytesOf(r))
	b, err := r.AppendBinary(nil)
	require.NoError(t, err)
	again, err := e.m.LoadRow("b", b)
	require.NoError(t, err)
	require.Equal(t, len(r.run.Ends), len(again.(*Row).run.Ends))
	for i, x := range r.run.Ends {
		require.Equal(t, x.String(), again.(*Row).run.Ends[i].String())
	}
}

// TestTasksThatAddTasksFitTheRow: as many growths as are allowed, each with its manifest chunk.
func TestTasksThatAddTasksFitTheRow(t *testing.T) {
	e := newEnv(t, mutants{})
	e.cached = map[string]codecs.Row{}
	e.start(&codecs.BatchStart{Queue: "q", OpenChildren: true})
	e.seal(1)
	for i := uint32(0); e.header().run.State == codecs.State_sealed; i++ {
		d := reportOf("r", 0, 1, codecs.NewItem(i, i, codecs.OK))
		d.Children = &codecs.Children{Count: 100, Chunk: &codecs.ChunkPosition{Partition: 100, Offset: 1 << 40}}
		e.step(codecs.TypeBatchReport, d)
		if i%500 == 0 {
			e.bytesOf(e.header())
		}
	}
	require.Contains(t, e.header().run.Reason, "too large")
	t.Logf("header row of %d growths: %d bytes", len(e.header().run.Growths), e.bytesOf(e.header()))
}

// TestParkedReportsAreBounded: reports before START cannot fill a row. What there was no room for is lost, so that a
// START that comes yet finds the batch INCONSISTENT, never short of a task that it takes for done.
func TestParkedReportsAreBounded(t *testing.T) {
	e := newEnv(t, mutants{})
	e.cached = map[string]codecs.Row{}
	for f := range uint32(codecs.MaxFeeders) {
		d := reportOf("r", 0, 1, codecs.NewItem(0, DefaultMaxTotal-1, codecs.OK))
		d.Feeder = f
		r := e.step(codecs.TypeBatchReport, d)
		require.LessOrEqual(t, len(r.run.chunks), e.m.rooms.parked)
	}
	r := e.header()
	require.Greater(t, r.Audit.Stale, uint64(DefaultMaxTotal))
	e.bytesOf(r)
	r = e.start(&codecs.BatchStart{Feeders: codecs.MaxFeeders})
	require.Equal(t, codecs.State_inconsistent, r.run.State)
	require.Contains(t, r.run.Reason, "before START")
}

// What does not fit a row is refused where it comes from, with the field that is too long.
func TestTooLongIsRefused(t *testing.T) {
	e := newEnv(t, mutants{})
	refused := func() string {
		for i := len(e.sent) - 1; i >= 0; i-- {
			if d, ok := e.sent[i].Data.(*codecs.DeadLetter); ok {
				return d.Reason
			}
		}
		return ""
	}
	labels := map[string]string{}
	for i := range codecs.MaxLabels {
		labels[fmt.Sprint("l", i)] = strings.Repeat("x", 1024)
	}
	e.start(&codecs.BatchStart{Labels: labels})
	require.Contains(t, refused(), "bytes: at most 65536")
	e.start(&codecs.BatchStart{Mode: "markers", Units: []*codecs.UnitSet{{Stage: "s", Topic: "t", Partitions: 1}, {Stage: "s", Topic: "t", Partitions: 2}}})
	require.Contains(t, refused(), "/units: s/t twice")
	e.start(&codecs.BatchStart{})
	e.step(codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "r", Total: 1, Chunks: make([]*codecs.ChunkPosition, maxManifest+1)})
	require.Contains(t, refused(), "/chunks: 4097")
	e.step(codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "r", Total: 1, PayloadDigest: make([]byte, maxDigest+1)})
	require.Contains(t, refused(), "/payload_digest: 65 bytes")
	require.Equal(t, codecs.State_completed, func() codecs.State_Code { e.seal(1); return e.round(1, 0, 0, codecs.OK).run.State }())
}

// TestCountsPack: counts of any chunks are the same after they were packed and read.
func TestCountsPack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newRun("r", 0)
		for range rapid.IntRange(0, 40).Draw(rt, "chunks") {
			id := rapid.SampledFrom([]uint32{0, 1, 2, 3, 9, 1 << 16, 1<<16 + 1, 1023<<16 | 0xffff}).Draw(rt, "id")
			c := counts{}
			left := uint32(codecs.ChunkSize)
			for _, n := range c.kinds() {
				*n = rapid.SampledFrom([]uint32{0, 0, 1, 255, 256, left}).Draw(rt, "n")
				*n = min(*n, left)
				left -= *n
			}
			l.set(id, c)
		}
		b := l.packed()
		require.LessOrEqual(t, len(b), l.bytes())
		again := newRun("r", 0)
		require.NoError(t, again.unpack(b))
		require.Equal(t, l.chunks, again.chunks)
		require.Equal(t, l.sum, again.sum)
		require.Equal(t, []int{l.cost, l.groups}, []int{again.cost, again.groups}, "whatever the order")
		for cut := range len(b) { // never more than there is
			_ = newRun("r", 0).unpack(b[:cut])
		}
	})
}

// TestUnknownFieldsSurvive: rows of a later release keep what this one does not know, in the header, its run, the chunks
// and their legs.
func TestUnknownFieldsSurvive(t *testing.T) {
	e := newEnv(t, mutants{})
	e.start(&codecs.BatchStart{})
	e.seal(10)
	e.round(1, 0, 3, codecs.Failed)
	field := protowire.AppendVarint(protowire.AppendTag(nil, 2000, protowire.VarintType), 7)
	h := e.header()
	h.ProtoReflect().SetUnknown(field)
	h.BatchRow.Run.ProtoReflect().SetUnknown(field)
	e.store("b", e.applied("b"), h)
	key := codecs.ChunkKey("b", "r", 0)
	c := e.chunk(key)
	c.unknown, c.legs[0].unknown = field, field
	e.store(key, e.applied(key), c)

	e.round(1, 4, 8, codecs.OK)
	e.command("1", "cancel", nil)
	e.command("2", "redrive", nil)
	h = e.round(2, 9, 9, codecs.OK)
	require.Equal(t, field, []byte(h.ProtoReflect().GetUnknown()))
	require.Equal(t, field, []byte(e.header().BatchRow.Run.ProtoReflect().GetUnknown()))
	require.Equal(t, field, e.chunk(key).unknown)
	require.Equal(t, field, e.chunk(key).legs[0].unknown)
}

// TestCachedRowsDecideAlike: a row that stays decoded for long and one that is read again before each event decide the
// same, near their bounds too.
func TestCachedRowsDecideAlike(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawScene(rt)
		read, kept := newEnv(t, mutants{}), newEnv(t, mutants{})
		kept.cached = map[string]codecs.Row{}
		read.m.rooms.header = rapid.IntRange(100, 400).Draw(rt, "room")
		kept.m.rooms = read.m.rooms
		for range rapid.IntRange(3, 40).Draw(rt, "events") {
			read.now += rapid.SampledFrom(dt).Draw(rt, "dt")
			kept.now = read.now
			typ, data := c.event(rt)
			n := len(read.sent)
			want := read.step(typ, data)
			got := kept.step(typ, data)
			require.Equal(t, want.String(), got.String(), read.log())
			requireSame(rt, read.sent[n:], kept.sent[n:])
		}
	})
}

// TestScatteredChunksAreCollected: whatever chunks a run leaves behind, the row that names them can be read again.
func TestScatteredChunksAreCollected(t *testing.T) {
	for _, gap := range []uint32{1, 2, 4, 64, 256} {
		e := newEnv(t, mutants{})
		r := e.start(&codecs.BatchStart{Feeders: codecs.MaxFeeders, MaxTotal: 1<<32 - 1})
		for id := uint32(0); len(r.run.chunks) < 20_000; id += gap {
			r.run.set(id, counts{n: [outcomes]uint32{codecs.OK: 1}})
		}
		r.retire(r.run)
		r.run = newRun("s", 1)
		r.BatchRow.Run = r.run.RunRow
		b, err := r.AppendBinary(nil)
		require.NoError(t, err)
		again, err := e.m.LoadRow("b", b)
		require.NoError(t, err, "gap %d", gap)
		parts, _ := e.m.Collect(again)
		require.Contains(t, parts, codecs.ChunkKey("b", "r", 0))
		require.Less(t, len(b), 32<<10)
	}
}

// TestOneChunkTooMany: the row of a batch that named more chunks than a run may have can be read again.
func TestOneChunkTooMany(t *testing.T) {
	e := newEnv(t, mutants{})
	r := e.start(&codecs.BatchStart{Feeders: codecs.MaxFeeders, MaxTotal: 1<<32 - 1})
	full := counts{n: [outcomes]uint32{codecs.OK: codecs.ChunkSize}}
	for id := range uint32(maxChunks + 1<<16) { // all of two feeders, and of a third at once
		r.run.set(id, full)
	}
	e.store("b", e.applied("b"), r)
	r = e.round(1, 0, 0, codecs.OK)
	require.Equal(t, codecs.State_inconsistent, r.run.State)
	e.bytesOf(e.header())
}

// TestLegsThatContradict: a chunk that learns of more legs counts as one that is read again.
func TestLegsThatContradict(t *testing.T) {
	e := newEnv(t, mutants{})
	e.cached = map[string]codecs.Row{}
	e.step(codecs.TypeBatchReport, reportOf("r", 0, 1, codecs.NewItem(0, 2, codecs.OK)))
	d := reportOf("r", 0, 1, codecs.NewItem(3, 3, codecs.OK))
	d.Legs = 3
	e.step(codecs.TypeBatchReport, d)
	key := codecs.ChunkKey("b", "r", 0)
	was := e.chunk(key)
	b, err := was.AppendBinary(nil)
	require.NoError(t, err)
	again, err := e.m.LoadPart(key, b)
	require.NoError(t, err)
	require.Equal(t, again.(*Chunk).n, was.n)
}
