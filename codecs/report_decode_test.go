package codecs

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

func TestFastReportIsUsed(t *testing.T) {
	for _, m := range []*BatchReport{{}, itemsReport(), {Run: "r", Items: []*ReportItem{NewItem(1, 9, OK)}}, {Items: []*ReportItem{{}}}} {
		v, err := proto.Marshal(m)
		require.NoError(t, err)
		r, run, reporter, ok := decodeReport(v)
		require.True(t, ok)
		r.Run, r.Reporter = string(run), string(reporter)
		require.True(t, proto.Equal(m, r), "%v / %v", m, r)
	}
	v, err := proto.Marshal(&BatchReport{Timing: &Timing{}})
	require.NoError(t, err)
	_, _, _, ok := decodeReport(v)
	require.False(t, ok, "timing is for proto.Unmarshal")
}

func TestDecodeReportAllocations(t *testing.T) {
	rec := reportRecord(t, &BatchReport{Run: "01J9ZK3V", Reporter: "worker-17", Items: []*ReportItem{NewItem(41, 41, OK)}})
	var ev Event
	n := testing.AllocsPerRun(100, func() {
		if err := Decode(&rec, &ev); err != nil {
			t.Fatal(err)
		}
	})
	require.LessOrEqual(t, n, 2.0)
	n = testing.AllocsPerRun(100, func() {
		if err := Validate(&ev); err != nil {
			t.Fatal(err)
		}
	})
	require.Zero(t, n)
}

// FuzzDecodeReport: the fast decoder and proto.Unmarshal agree on every input.
func FuzzDecodeReport(f *testing.F) {
	for _, m := range []*BatchReport{{}, itemsReport(), {Run: "r", Items: []*ReportItem{NewItem(1, 9, OK)}}, {Timing: &Timing{Run: []byte{1}}}} {
		v, err := proto.Marshal(m)
		require.NoError(f, err)
		f.Add(v)
		f.Add(append(v, v...))
		f.Add(v[:len(v)/2])
	}
	f.Add([]byte{0x22, 0x00, 0x22, 0x02, 0x10, 0x00})
	f.Add([]byte{0x8a, 0x00, 0x00})
	f.Fuzz(func(t *testing.T, v []byte) {
		fast, run, reporter, ok := decodeReport(v)
		if !ok {
			return
		}
		fast.Run, fast.Reporter = string(run), string(reporter)
		var want BatchReport
		require.NoError(t, proto.Unmarshal(v, &want))
		require.True(t, proto.Equal(&want, fast), "%x: %v / %v", v, &want, fast)
		again, err := proto.MarshalOptions{Deterministic: true}.Marshal(&want)
		require.NoError(t, err)
		ours, ok := appendReport(nil, fast)
		require.True(t, ok)
		require.Equal(t, string(again), string(ours))
		require.GreaterOrEqual(t, reportBytes(fast), len(ours))
	})
}

func BenchmarkDecode(b *testing.B) {
	for name, m := range map[string]*BatchReport{
		"one":   {Run: "01J9ZK3V", Reporter: "worker-17", Items: []*ReportItem{NewItem(41_000, 41_000, OK)}},
		"range": {Run: "01J9ZK3V", Reporter: "worker-17", Items: []*ReportItem{NewItem(41_000, 41_099, OK)}},
		"items": itemsReport(),
	} {
		rec := reportRecord(b, m)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var ev Event
			for b.Loop() {
				if err := Decode(&rec, &ev); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	rec := reportRecord(b, itemsReport())
	b.Run("proto.Unmarshal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := proto.Unmarshal(rec.Value, new(BatchReport)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkValidate(b *testing.B) {
	ev := Event{Type: TypeBatchReport, Key: "nightly-2026-11-30", Data: &BatchReport{Run: "01J9ZK3V", Reporter: "worker-17",
		Items: []*ReportItem{NewItem(41_000, 41_000, OK)}}}
	b.ReportAllocs()
	for b.Loop() {
		if err := Validate(&ev); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	e := Encoder{Source: "/quiesce/quiesce/quiesce.controller"}
	for name, ev := range map[string]*Event{
		"report": {Type: TypeBatchReport, ID: "worker-17/000123", Data: &BatchReport{Run: "01J9ZK3V", Reporter: "worker-17",
			Items: []*ReportItem{NewItem(41_000, 41_000, OK)}}},
		"status": {Type: TypeBatchStatus, ID: "c/1/2/3/0", Data: &BatchStatus{Run: "01J9ZK3V", State: State_sealed, Round: 1}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Encode("quiesce.control", "nightly-2026-11-30", ev); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
