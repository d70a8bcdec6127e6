package processors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
)

// marking is a tally whose collected rows stay as markers, for ever.
type marking struct {
	tally
	loads map[string]int // of LoadRow, by key
}

func newMarking() *marking { return &marking{loads: map[string]int{}} }

func (m *marking) LoadRow(key string, b []byte) (Row, error) {
	m.loads[key]++
	return m.tally.LoadRow(key, b)
}

func (m *marking) Collect(row Row) ([]string, bool) {
	parts, _ := m.tally.Collect(row)
	return parts, false
}

// glancing sees markers without decoding them.
type glancing struct{ *marking }

func (g glancing) Glance(b []byte) (deadline int64, settled bool) {
	var r tallyRow
	return r.Deadline, bytes.Contains(b, []byte(`"Gone":true`)) && json.Unmarshal(b, &r) == nil
}

// TestSurveyKeepsWhatIsLeftToDelete: an owner that dies while it deletes the parts of a marker leaves the rest to the next
// one; once all are gone, a marker costs a take-over nothing.
func TestSurveyKeepsWhatIsLeftToDelete(t *testing.T) {
	for name, machine := range map[string]func(*marking) Machine{
		"decodes": func(m *marking) Machine { return m },
		"glances": func(m *marking) Machine { return glancing{m} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(1)
			own := func(disk *memory) (*part, *marking) {
				m := newMarking()
				p, err := w.own(w.live(), disk, machine(m), nil, rules{})
				require.NoError(t, err)
				require.NoError(t, w.feed(p, 1<<30))
				return p, m
			}
			w.report("a", 1, 100, 200)
			w.report("k", 1, 100, 200)
			w.seal("a", 9)
			w.command("k", "collect")
			disk := newMemory()
			p, _ := own(disk)
			require.NoError(t, flushNow(p)) // the marker is durable, no part is deleted
			left := func(key string) (n int) {
				rows, err := w.table(wTable)
				require.NoError(t, err)
				for k := range rows {
					if id, _, _, ok := codecs.SplitChunkKey(k); ok && id == key {
						n++
					}
				}
				return n
			}
			require.Equal(t, 3, left("k"))

			p, m := own(disk.copy())
			require.Len(t, p.collect, 1)
			require.Positive(t, m.loads["k"])
			require.NoError(t, settle(p))
			require.Zero(t, left("k"))
			require.Equal(t, 3, left("a"))

			p, m = own(newMemory())
			require.Empty(t, p.collect)
			require.Equal(t, name == "decodes", m.loads["k"] > 0)
			require.Positive(t, m.loads["a"])
		})
	}
}

// TestFarDeadlinesWaitPacked: a settled row is no timer until its hour is near; then it is nudged if it still has a
// deadline.
func TestFarDeadlinesWaitPacked(t *testing.T) {
	w := newWorld(1)
	at := w.now.Add(5 * time.Hour)
	deadline := func(key string, ms int64) {
		w.produce(&codecs.Event{Type: codecs.TypeBatchCommand, ID: fmt.Sprint(w.end(wInput)), Data: &codecs.BatchCommand{Id: "c", Verb: "deadline",
			Args: &codecs.CommandArgs{Deadlines: &codecs.Deadlines{SealBy: ms}}}}, key)
	}
	for _, key := range []string{"a", "b", "c", "near"} {
		w.report(key, 1)
		w.command(key, "collect")
		deadline(key, at.UnixMilli())
	}
	deadline("near", w.now.Add(time.Minute).UnixMilli())
	own := func() *part {
		p, err := w.own(w.live(), newMemory(), glancing{newMarking()}, nil, rules{})
		require.NoError(t, err)
		require.NoError(t, w.feed(p, 1<<30))
		require.NoError(t, settle(p))
		return p
	}
	require.Len(t, own().timers.heap, 4, "rows that it has worked on itself")
	p := own()
	require.Len(t, p.timers.heap, 1)
	require.Contains(t, p.timers.byKey, "near")

	deadline("b", 0)
	deadline("c", at.Add(time.Hour).UnixMilli())
	require.NoError(t, w.feed(p, 1<<30))
	require.NoError(t, settle(p))
	require.NoError(t, p.ripen(w.now))
	require.Len(t, p.timers.heap, 2, "near, and c")

	w.now = at.Add(-30 * time.Minute)
	require.NoError(t, p.ripen(w.now))
	require.Contains(t, p.timers.byKey, "a")
	require.NotContains(t, p.timers.byKey, "b", "it has no deadline any more")
	require.Equal(t, at.Add(time.Hour).UnixMilli(), p.timers.byKey["c"].deadline)
	p.nudge(w.now)
	end := w.end(wInput)
	w.now = at
	p.nudge(w.now)
	recs := w.log(wInput).recs[end:]
	require.Len(t, recs, 2, "a, and near once more")
	require.Equal(t, time.Hour, (&far{}).until(w.now))
}
