package codecs

import (
	"bytes"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

type span struct{ first, last uint32 }

func spans(it *ReportItem) (out []span, err error) {
	err = ForEachRange(it, func(first, last uint32) { out = append(out, span{first, last}) })
	return out, err
}

func TestForEachRange(t *testing.T) {
	last := uint32(3)
	for _, c := range []struct {
		it   *ReportItem
		want []span
	}{
		{NewItem(7, 7, OK), []span{{7, 7}}},
		{NewItem(7, 9, OK), []span{{7, 9}}},
		{NewItem(0, 4294967295, OK), []span{{0, 4294967295}}},
		{&ReportItem{}, []span{{0, 0}}},
		{&ReportItem{Bitmap: bitmapOf(1, 2, 3, 9, 65535, 65536, 65537, 1<<31, 4294967295)},
			[]span{{1, 3}, {9, 9}, {65535, 65537}, {1 << 31, 1 << 31}, {4294967295, 4294967295}}},
		{&ReportItem{First: 5, Last: &last, Bitmap: bitmapOf(8)}, []span{{8, 8}}},
		{&ReportItem{Bitmap: bitmapOf()}, nil},
	} {
		got, err := spans(c.it)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	_, err := spans(&ReportItem{First: 5, Last: &last})
	require.EqualError(t, err, "/last: smaller than first")
	_, err = spans(&ReportItem{Bitmap: []byte("hello, world")})
	require.ErrorIs(t, err, ErrBitmap)
}

// drawSet makes sets whose containers are arrays, bit sets and runs.
func drawSet(t *rapid.T) *roaring.Bitmap {
	m := roaring.New()
	for range rapid.IntRange(0, 6).Draw(t, "blocks") {
		base := uint64(rapid.SampledFrom([]uint32{0, 1, 2, 7, 65534, 65535}).Draw(t, "block")) << 16
		switch rapid.IntRange(0, 2).Draw(t, "shape") {
		case 0:
			for _, x := range rapid.SliceOfN(rapid.Uint16(), 1, 50).Draw(t, "ids") {
				m.Add(uint32(base) + uint32(x))
			}
		case 1:
			from := rapid.IntRange(0, 65535).Draw(t, "from")
			m.AddRange(base+uint64(from), base+uint64(rapid.IntRange(from, 65536).Draw(t, "to")))
		default:
			step := rapid.IntRange(3, 90).Draw(t, "step")
			for x := 0; x < 65536; x += step {
				m.Add(uint32(base) + uint32(x))
			}
		}
	}
	if rapid.Bool().Draw(t, "runs") {
		m.RunOptimize()
	}
	return m
}

func TestBitmapAgreesWithRoaring(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawSet(t)
		b, err := m.ToBytes()
		require.NoError(t, err)
		it := &ReportItem{Bitmap: b}
		back := roaring.New()
		before := int64(-2)
		require.NoError(t, ForEachRange(it, func(first, last uint32) {
			if first > last || int64(first) <= before+1 {
				t.Fatalf("%d-%d after %d: ranges ascend and do not touch", first, last, before)
			}
			before = int64(last)
			back.AddRange(uint64(first), uint64(last)+1)
		}))
		require.True(t, m.Equals(back))
		tasks, chunks, err := ItemSize(it)
		require.NoError(t, err)
		require.Equal(t, m.GetCardinality(), tasks)
		require.EqualValues(t, m.Stats().Containers, chunks)
	})
}

// Every hostile set is an error before anything is allocated for what it claims.
func TestHostileBitmaps(t *testing.T) {
	plain := func(n byte, rest ...byte) []byte { return append([]byte{0x3a, 0x30, 0, 0, n, 0, 0, 0}, rest...) }
	for name, b := range map[string][]byte{
		"cookie only":            {0x3a, 0x30, 0, 0},
		"4 billion containers":   {0x3a, 0x30, 0, 0, 0xff, 0xff, 0xff, 0xff},
		"65,537 containers":      append([]byte{0x3a, 0x30, 0, 0, 1, 0, 1, 0}, make([]byte, 8*65537)...),
		"no containers' heads":   plain(200),
		"data missing":           plain(1, 0, 0, 9, 0, 0, 0, 0, 0, 1, 0),
		"trailing bytes":         append(bitmapOf(1, 2, 9), 0),
		"array not sorted":       plain(1, 0, 0, 1, 0, 16, 0, 0, 0, 5, 0, 4, 0),
		"array repeats":          plain(1, 0, 0, 1, 0, 16, 0, 0, 0, 5, 0, 5, 0),
		"keys repeat":            plain(2, 3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 5, 0),
		"bit set of other size":  plain(1, append([]byte{0, 0, 0xff, 0xff, 16, 0, 0, 0}, bytes.Repeat([]byte{0x55}, 8192)...)...),
		"runs overlap":           {0x3b, 0x30, 0, 0, 1, 0, 0, 9, 0, 2, 0, 0, 0, 5, 0, 3, 0, 3, 0},
		"run over the end":       {0x3b, 0x30, 0, 0, 1, 0, 0, 9, 0, 1, 0, 0xff, 0xff, 9, 0},
		"run of other size":      {0x3b, 0x30, 0, 0, 1, 0, 0, 9, 0, 1, 0, 0, 0, 4, 0},
		"more runs than bytes":   {0x3b, 0x30, 0, 0, 1, 0, 0, 9, 0, 0xff, 0xff, 0, 0, 9, 0},
		"65,536 containers only": {0x3b, 0x30, 0xff, 0xff},
	} {
		t.Run(name, func(t *testing.T) {
			it := &ReportItem{Bitmap: b}
			n := testing.AllocsPerRun(1, func() {
				require.ErrorIs(t, ForEachRange(it, func(_, _ uint32) { t.Fatal("called") }), ErrBitmap)
			})
			require.Less(t, n, 50.0)
		})
	}
}

func FuzzBitmap(f *testing.F) {
	f.Add(bitmapOf(1, 2, 3, 70_000, 4294967295))
	full := roaring.New()
	full.AddRange(100, 200_000)
	b, err := full.ToBytes()
	require.NoError(f, err)
	f.Add(b)
	full.RunOptimize()
	b, err = full.ToBytes()
	require.NoError(f, err)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		got, err := spans(&ReportItem{Bitmap: b})
		if err != nil {
			return
		}
		m := roaring.New()
		_, err = m.ReadFrom(bytes.NewReader(b))
		require.NoError(t, err, "what passes here is read by roaring too")
		var want []span
		for first, end := range m.Ranges() {
			want = append(want, span{first, uint32(end - 1)})
		}
		require.Equal(t, want, got)
	})
}

func TestCoalescer(t *testing.T) {
	var c Coalescer
	add := func(it *ReportItem) { require.NoError(t, c.Add(it)) }
	add(NewItem(3, 3, OK))
	add(NewItem(3, 3, OK))
	add(NewItem(4, 4, OK))
	add(NewItem(4, 4, Failed)) // a second outcome changes nothing
	add(&ReportItem{First: 9, Outcome: Failed, Reason: "x", Attempt: 2})
	add(&ReportItem{First: 9, Outcome: OK, Leg: 1}) // another leg
	add(NewItem(20, 29, Outcome_unspecified))
	require.Equal(t, 2+1+1+10, c.Len())
	items, err := c.Items()
	require.NoError(t, err)
	want := []*ReportItem{
		NewItem(20, 29, Outcome_unspecified), NewItem(3, 4, OK), {First: 9, Outcome: OK, Leg: 1},
		{First: 9, Outcome: Failed, Reason: "x", Attempt: 2},
	}
	require.Len(t, items, len(want))
	for i := range want {
		require.True(t, proto.Equal(want[i], items[i]), "%d: %v", i, items[i])
	}
	require.Zero(t, c.Len())
	items, err = c.Items()
	require.NoError(t, err)
	require.Empty(t, items)
	require.Error(t, c.Add(&ReportItem{Bitmap: []byte("x")}))
}

// Merged items say of every task what the items said first, and are never more than one for a group of many ranges.
func TestMergeItemsKeepsTheFirstOutcome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var items []*ReportItem
		first := map[[2]uint32]Outcome_Code{}
		for range rapid.IntRange(0, 40).Draw(t, "n") {
			from := rapid.Uint32Range(0, 200).Draw(t, "from")
			it := NewItem(from, from+rapid.Uint32Range(0, 9).Draw(t, "more"), Outcome_Code(rapid.IntRange(0, 3).Draw(t, "outcome")))
			it.Leg = rapid.Uint32Range(0, 1).Draw(t, "leg")
			items = append(items, it)
			note(first, it)
		}
		merged, err := MergeItems(items)
		require.NoError(t, err)
		got := map[[2]uint32]Outcome_Code{}
		for _, it := range merged {
			require.NoError(t, ForEachRange(it, func(from, to uint32) {
				for x := from; x <= to; x++ {
					if it.Outcome != 0 && got[[2]uint32{it.Leg, x}] != 0 {
						t.Fatalf("two outcomes of task %d", x)
					}
				}
			}))
			note(got, it)
		}
		require.Equal(t, first, got)
		require.LessOrEqual(t, len(merged), 8*inline)
	})
}

// note keeps the first outcome of every task and leg, as the log would.
func note(m map[[2]uint32]Outcome_Code, it *ReportItem) {
	_ = ForEachRange(it, func(from, to uint32) {
		for x := from; x <= to; x++ {
			if k := [2]uint32{it.Leg, x}; m[k] == Outcome_unspecified {
				m[k] = it.Outcome
			}
		}
	})
}

func TestWorst(t *testing.T) {
	order := []Outcome_Code{Outcome_unspecified, Unknown, OK, Skipped, Cancelled, Lost, TimedOut, Failed}
	for i, a := range order {
		for j, b := range order {
			require.Equal(t, order[max(i, j)], Worst(a, b))
		}
		require.Equal(t, a == Failed || a == TimedOut || a == Lost, IsFailure(a))
	}
	require.False(t, State_sealed.Terminal())
	require.True(t, State_inconsistent.Terminal())
}
