package replay

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/quiesce/quiesce/codecs"
)

// tableWriter writes a table as the runtime does: a claim, rows, position rows.
type tableWriter struct {
	*bench
	claims []int64 // by partition: the claim now held
	topic  codecs.TopicID
}

func (b *bench) table(partitions int32) *tableWriter {
	w := &tableWriter{bench: b, topic: b.open("control").Topic().ID}
	for p := range partitions {
		w.claims = append(w.claims, w.claim(p))
	}
	return w
}

func (w *tableWriter) claim(p int32) int64 {
	v := codecs.AppendRow(nil, codecs.RowHeader{Format: codecs.RowFormat, Applied: -1}, []byte("owner"), nil)
	return w.send("counter-table", &codecs.Record{Partition: p, Key: []byte(codecs.ClaimKey), Value: v})
}

func (w *tableWriter) write(p int32, claim int64, key string, applied int64, row interface{ AppendBinary([]byte) ([]byte, error) }, tail ...byte) {
	b, err := row.AppendBinary(nil)
	require.NoError(w.t, err)
	h := codecs.RowHeader{Format: codecs.RowFormat, Claim: uint64(claim), Applied: applied}
	w.send("counter-table", &codecs.Record{Partition: p, Key: []byte(key), Value: codecs.AppendRow(nil, h, b, tail)})
}

func (w *tableWriter) row(r *Row) {
	var tail []byte
	if r.Part {
		tail = []byte{1, 0, 0, 0}
	}
	w.write(r.Partition, w.claims[r.Partition], r.Key, r.Applied, r.Row, tail...)
}

func (w *tableWriter) position(p int32, next int64) {
	w.write(p, w.claims[p], codecs.PositionKey, next-1, codecs.Position{Topic: w.topic, Offset: next})
}

// deployed fills the topics of q with a log and the table that it makes, all taken.
func deployed(t *testing.T, l *log) (*bench, *tableWriter, *State) {
	b := setup(t, l.partitions)
	b.send("control", l.records...)
	live := b.open("control")
	s, err := Fold(context.Background(), FoldConfig{Machine: counter{}, Source: live})
	require.NoError(t, err)
	w := b.table(l.partitions)
	for _, r := range s.Rows() {
		w.row(r)
	}
	for p := range l.partitions {
		_, end := live.Bounds(p)
		w.position(p, end)
	}
	return b, w, s
}

func (b *bench) diff() *Report {
	r, err := Diff(context.Background(), DiffConfig{Client: b.opts, Prefix: b.prefix, Machine: counter{}})
	require.NoError(b.t, err)
	return r
}

func some(t testing.TB) *log {
	l := newLog(t, 2)
	for _, key := range []string{"b-1", "b-2", "b-3", "b-4"} {
		l.report(key, "w", 1, 70_000)
		l.report(key, "w", 2)
	}
	return l
}

func find(s *State, key string) *Row {
	i := slices.IndexFunc(s.Rows(), func(r *Row) bool { return r.Key == key })
	return s.Rows()[i]
}

func TestDiffOfATableThatTheLogMakes(t *testing.T) {
	b, _, s := deployed(t, some(t))
	r := b.diff()
	require.True(t, r.OK(), r.Text())
	require.Equal(t, len(s.Rows()), r.Same)
	require.Equal(t, 12, r.Same, "four headers, two chunks each")
	require.Empty(t, r.Unchecked, r.Text())
}

func TestDiffFindsAlteredRows(t *testing.T) {
	b, w, s := deployed(t, some(t))
	head, part := find(s, "b-2"), find(s, codecs.ChunkKey("b-3", "r", 1))
	w.write(head.Partition, w.claims[head.Partition], head.Key, head.Applied, &count{events: 99})
	w.write(part.Partition, w.claims[part.Partition], part.Key, part.Applied-1, part.Row, 1, 0, 0, 0) // the same line, another offset
	lost := find(s, "b-4")
	w.send("counter-table", &codecs.Record{Partition: lost.Partition, Key: []byte(lost.Key),
		Headers: []codecs.Header{{Key: "quiesce-claim", Value: []byte("999")}}})
	extra := codecs.Partition([]byte("b-9"), 2)
	w.write(extra, 999, "b-9", 0, &count{events: 1})
	r := b.diff()
	require.False(t, r.OK())
	var keys []string
	for _, a := range r.Altered {
		keys = append(keys, a.Key)
	}
	require.ElementsMatch(t, []string{"b-2", "b-3|r|1", "b-4", "b-9"}, keys, r.Text())
	require.Equal(t, 9, r.Same)
	require.Contains(t, r.Text(), "table:  events=99")
	require.Contains(t, r.Text(), "(no row)")
}

func TestDiffIgnoresWhatStandsBehindANewerClaim(t *testing.T) {
	b, w, s := deployed(t, some(t))
	r := find(s, "b-2")
	old := w.claims[r.Partition]
	w.claims[r.Partition] = w.claim(r.Partition)
	w.write(r.Partition, old, r.Key, r.Applied, &count{events: 99}) // a zombie
	require.True(t, b.diff().OK())
	w.write(r.Partition, w.claims[r.Partition], r.Key, r.Applied, &count{events: 99})
	require.False(t, b.diff().OK())
}

func TestDiffStopsAtThePositionRow(t *testing.T) {
	b, w, s := deployed(t, some(t))
	r := find(s, "b-1")
	more := newLog(t, 2)
	more.next[r.Partition] = r.Applied + 100
	rec := more.report("b-1", "w", 3)
	end := b.send("control", rec) // read by nobody yet
	require.True(t, b.diff().OK())
	w.write(r.Partition, w.claims[r.Partition], r.Key, end, &count{events: 3}) // its row is written, the position row is not
	d := b.diff()
	require.True(t, d.OK(), d.Text())
	require.Len(t, d.Unchecked, 1)
	require.Equal(t, "b-1", d.Unchecked[0].Key)
	require.Contains(t, d.Unchecked[0].Reason, "ahead of the table's position")
	w.position(r.Partition, end+1)
	require.Len(t, b.diff().Altered, 2, "header and chunk lack the last event")
}

func TestDiffSaysWhatItCannotCheck(t *testing.T) {
	for name, c := range map[string]struct {
		break_ func(b *bench, w *tableWriter, end int64)
		want   string
	}{
		"adopted": {func(b *bench, w *tableWriter, _ int64) {
			v := codecs.AppendRow(nil, codecs.RowHeader{Format: codecs.RowFormat, Applied: -1}, make([]byte, 16), nil)
			b.send("counter-table", &codecs.Record{Partition: 0, Key: []byte(codecs.AdoptKey), Value: v})
		}, "adopted"},
		"another topic":  {func(b *bench, w *tableWriter, end int64) { w.topic[0]++; w.position(0, end) }, "the table follows topic id"},
		"beyond the end": {func(b *bench, w *tableWriter, end int64) { w.position(0, end+1) }, "beyond the end of the input"},
		"no position": {func(b *bench, w *tableWriter, end int64) {
			b.send("counter-table", &codecs.Record{Partition: 0, Key: []byte(codecs.PositionKey), Value: nil,
				Headers: []codecs.Header{{Key: "quiesce-claim", Value: []byte("999")}}})
		}, "no position row"},
		"log cut": {func(b *bench, w *tableWriter, end int64) {
			offsets := kadm.Offsets{}
			offsets.Add(kadm.Offset{Topic: b.name("control"), Partition: 0, At: 1})
			_, err := b.admin.DeleteRecords(context.Background(), offsets)
			require.NoError(b.t, err)
		}, "the log starts at offset 1"},
		"log gone": {func(b *bench, w *tableWriter, end int64) {
			w.position(0, end-1)
			offsets := kadm.Offsets{}
			offsets.Add(kadm.Offset{Topic: b.name("control"), Partition: 0, At: end})
			_, err := b.admin.DeleteRecords(context.Background(), offsets)
			require.NoError(b.t, err)
		}, "what is between is lost"},
		"quarantined": {func(b *bench, w *tableWriter, end int64) {
			w.write(0, w.claims[0], keyOn(0), 0, &count{events: 77}, 0, 0, 1, 5, 0, 1, 'x', 0)
		}, "quarantined"},
	} {
		t.Run(name, func(t *testing.T) {
			b, w, _ := deployed(t, some(t))
			_, end := b.open("control").Bounds(0)
			require.NotZero(t, end)
			c.break_(b, w, end)
			r := b.diff()
			require.True(t, r.OK(), r.Text())
			require.NotEmpty(t, r.Unchecked)
			require.Contains(t, r.Text(), c.want)
			require.NotZero(t, r.Same, "the other partition is checked")
		})
	}
}

// keyOn is a key of the log some that lies on a partition of two.
func keyOn(p int32) string {
	for _, key := range []string{"b-1", "b-2", "b-3", "b-4"} {
		if codecs.Partition([]byte(key), 2) == p {
			return key
		}
	}
	panic("no key")
}

func TestDiffOfRowsThatAreBeingDeleted(t *testing.T) {
	l := newLog(t, 1)
	l.report("b-1", "w", 1)
	l.command("b-1", "gc", "")
	b, w, s := deployed(t, l)
	require.Empty(t, s.Rows())
	require.True(t, b.diff().OK(), "deleted in both")
	for _, r := range s.gone {
		w.row(r)
	}
	r := b.diff()
	require.True(t, r.OK(), r.Text())
	require.Equal(t, 2, r.Same, "not yet deleted, as it was")
	w.write(0, w.claims[0], "b-1", 1, &count{events: 5})
	require.False(t, b.diff().OK())
}

func TestDiffDoesNotJudgeARowThatWasMadeAnew(t *testing.T) {
	l := newLog(t, 1)
	l.report("b-1", "w", 1)
	l.command("b-1", "gc", "")
	l.report("b-1", "w", 1)
	b, w, _ := deployed(t, l)
	w.write(0, w.claims[0], "b-1", 2, &count{events: 3, tasks: 2, given: 2}) // the old row was still there
	r := b.diff()
	require.True(t, r.OK(), r.Text())
	require.Contains(t, r.Text(), "an event came while the row was being deleted")
}

func TestDiffOfAnEmptyDeployment(t *testing.T) {
	b := setup(t, 2)
	require.Equal(t, &Report{}, b.diff())
}
