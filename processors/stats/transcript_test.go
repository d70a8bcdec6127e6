package stats_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/stats"
)

var (
	_ processors.Machine = (*stats.Machine)(nil)
	_ processors.Local   = (*stats.Machine)(nil)
)

// env runs events against rows the way the runtime does: encoded and loaded again after every event.
type env struct {
	m    *stats.Machine
	rows map[string][]byte
	off  int64
}

func (e *env) row(t testing.TB, key string) *stats.Row {
	t.Helper()
	if b, ok := e.rows[key]; ok {
		r, err := e.m.LoadRow(key, b)
		require.NoError(t, err)
		return r.(*stats.Row)
	}
	return e.m.NewRow(key).(*stats.Row)
}

func (e *env) take(t testing.TB, rec *codecs.Record) *stats.Row {
	t.Helper()
	var ev codecs.Event
	require.NoError(t, e.m.Decode(rec, &ev))
	r := e.row(t, ev.Key)
	require.Empty(t, e.m.Parts(r, rec.Offset, &ev))
	require.Empty(t, e.m.Step(r, nil, rec.Offset, &ev, nil))
	b, err := r.AppendBinary(nil)
	require.NoError(t, err)
	require.LessOrEqual(t, len(b), e.m.MaxRowBytes())
	e.rows[ev.Key] = b
	return e.row(t, ev.Key)
}

func (e *env) all(t testing.TB) (rows []*stats.Row) {
	for key := range e.rows {
		rows = append(rows, e.row(t, key))
	}
	return rows
}

// The commands are event types with JSON data, and p=, at= (ms), run=, wait= (comma separated ms of the timing).
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		e := &env{m: stats.New(), rows: map[string][]byte{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return e.run(t, d) })
	})
}

func (e *env) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "merge", "overall":
		by := stats.ByDay
		if d.Cmd == "overall" {
			by = stats.Overall
		}
		var lines []string
		for _, r := range stats.Merge(e.all(t), by) {
			lines = append(lines, r.String())
		}
		return strings.Join(lines, "\n")
	case "snapshot":
		var lines []string
		for _, r := range stats.Merge(e.all(t), stats.Overall) {
			b, err := json.Marshal(r.Snapshot())
			require.NoError(t, err)
			lines = append(lines, string(b))
		}
		return strings.Join(lines, "\n")
	}
	data, err := codecs.NewData(d.Cmd)
	require.NoError(t, err)
	if d.Input != "" {
		require.NoError(t, protojson.Unmarshal([]byte(d.Input), data))
	}
	rec := codecs.Record{}
	timing := &codecs.Timing{Run: sketch(t, d, "run"), QueueWait: sketch(t, d, "wait")}
	switch m := data.(type) {
	case *codecs.JobEvent:
		m.Timing = timing
	case *codecs.SubjobsCompleted:
		m.Timings = append(m.Timings, timing)
	}
	e.off++
	rec, err = codecs.Encode("quiesce.events", "k", "/t", &codecs.Event{Type: d.Cmd, ID: fmt.Sprint(e.off), Data: data})
	require.NoError(t, err)
	rec.Partition, rec.Offset = 0, e.off
	d.MaybeScanArgs(t, "p", &rec.Partition)
	d.MaybeScanArgs(t, "at", &rec.Time)
	return e.take(t, &rec).String()
}

func sketch(t *testing.T, d *datadriven.TestData, name string) []byte {
	var list string
	if d.MaybeScanArgs(t, name, &list); list == "" {
		return nil
	}
	s := codecs.NewSketch()
	for _, f := range strings.Split(list, "/") {
		v, err := strconv.ParseFloat(f, 64)
		require.NoError(t, err)
		s.Add(v)
	}
	b, err := s.AppendBinary(nil)
	require.NoError(t, err)
	return b
}

func TestBadTimingIsCounted(t *testing.T) {
	e := &env{m: stats.New(), rows: map[string][]byte{}}
	rec, err := codecs.Encode("quiesce.events", "k", "/t", &codecs.Event{Type: codecs.TypeSubjobsCompleted, ID: "1",
		Data: &codecs.SubjobsCompleted{Items: []*codecs.ReportItem{codecs.NewItem(0, 4, codecs.OK)}, Timing: &codecs.Timing{Run: []byte("junk")}}})
	require.NoError(t, err)
	rec.Partition = 0
	require.Equal(t, "stats p0 - - - 1970-01-01 ok=5 bad_timings=1", e.take(t, &rec).String())
}

func TestKeysRoundTrip(t *testing.T) {
	k := stats.Key{Partition: 3, Type: "invoices", Step: "s1", Queue: "q", Day: 20_000}
	got, err := stats.ParseKey(k.String())
	require.NoError(t, err)
	require.Equal(t, k, got)
	require.Equal(t, "2024-10-04", got.Date())
	for _, bad := range []string{"", "3", "x\x00\x00\x00\x001", "1\x00\x00\x00\x00", "1\x00a\x00b\x00c\x00d\x001"} {
		_, err := stats.ParseKey(bad)
		require.Error(t, err, "%q", bad)
	}
}
