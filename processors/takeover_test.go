package processors

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
)

// live returns a process that does not die.
func (w *world) live() *process { return &process{w: w, budget: -1} }

// ownNow takes the partition over and feeds it everything.
func (w *world) ownNow(t *testing.T, disk *memory, off rules) *part {
	t.Helper()
	p, err := w.own(w.live(), disk, &tally{}, nil, off)
	require.NoError(t, err)
	require.NoError(t, w.feed(p, 1<<30))
	require.NoError(t, settle(p))
	return p
}

// rule runs a check with a rule on, where it must hold, and with the rule off, where it must not.
func rule(t *testing.T, off rules, check func(t *testing.T, off rules) error) {
	t.Helper()
	require.NoError(t, check(t, rules{}))
	require.Error(t, check(t, off), "nothing shows that the rule is off")
}

func TestStoredOffsetWaitsForTheRewrite(t *testing.T) {
	rule(t, rules{offsetOverGap: true}, func(t *testing.T, off rules) error {
		w := newWorld(1)
		w.report("k", 1)
		a := w.ownNow(t, newMemory(), off)
		disk := newMemory()
		w.ownNow(t, disk, off)
		stale := codecs.AppendRow(nil, codecs.RowHeader{Format: 1, Claim: a.claim, Applied: 0}, []byte(`{"Count":9}`), nil)
		w.append(wTable, []byte("k"), stale, nil)
		for _, budget := range []int{1, 3} { // claim; claim, hook, store, not the rewrite
			_, err := w.own(&process{w: w, budget: budget, lateness: true}, disk, &tally{}, nil, off)
			require.ErrorIs(t, err, errDead)
		}
		w.ownNow(t, disk, off)
		w.compact(wTable)
		w.ownNow(t, newMemory(), off)
		return w.verdict()
	})
}

func TestOldLocalCopyIsDiscarded(t *testing.T) {
	rule(t, rules{keepOldStore: true}, func(t *testing.T, off rules) error {
		w := newWorld(1)
		w.report("k", 1)
		old := newMemory()
		w.ownNow(t, old, off)
		w.command("k", "collect")
		w.ownNow(t, old.copy(), off)
		w.compact(wTable)
		l := w.log(wTable) // the cleaner has removed the null records as well
		l.recs = deleteNulls(l.recs)
		w.now = w.now.Add(13 * time.Hour)
		disk := old.copy()
		w.ownNow(t, disk, off)
		if disk.rows["k"] != nil {
			return errGhost
		}
		return nil
	})
}

func TestCompactedGapEndsTheOwnership(t *testing.T) {
	rule(t, rules{compactedGapOK: true}, func(t *testing.T, off rules) error {
		w := newWorld(1)
		p := w.ownNow(t, newMemory(), off)
		w.append(wTable, []byte("x"), []byte("foreign"), nil)
		w.append(wTable, []byte("y"), []byte("foreign"), nil)
		l := w.log(wTable)
		l.recs = l.recs[: len(l.recs)-2 : len(l.recs)-2] // both compacted away
		w.report("k", 1)
		require.NoError(t, w.feed(p, 1))
		if err := flushNow(p); err == nil {
			return errGhost
		}
		return nil
	})
}

func TestPositionIsBoundToTheTopic(t *testing.T) {
	rule(t, rules{ignoreTopicID: true}, func(t *testing.T, off rules) error {
		w := newWorld(1)
		w.report("k", 1)
		w.report("k", 2)
		w.ownNow(t, newMemory(), off)
		was := w.topics[wInput]
		w.topics[wInput] = &logFile{}
		w.report("k", 3)
		proc := w.live()
		e := w.env(proc, &tally{}, nil, off)
		e.topicID = codecs.TopicID{2}
		disk := newMemory()
		disk.p = proc
		_, err := takeOver(t.Context(), e, 0, disk)
		if err == nil {
			return errGhost
		}
		require.ErrorIs(t, err, ErrRefused)
		require.ErrorContains(t, err, codecs.TopicID{1}.String())
		require.ErrorContains(t, err, codecs.TopicID{2}.String())
		w.topics[wInput] = was
		was.recs, was.end = was.recs[:1], 1 // truncated
		_, err = w.own(w.live(), newMemory(), &tally{}, nil, off)
		require.ErrorIs(t, err, ErrRefused)
		return nil
	})
}

func TestAdoptionStartsAgain(t *testing.T) {
	w := newWorld(1)
	w.report("k", 1)
	p, err := w.own(w.live(), newMemory(), &tally{}, nil, rules{})
	require.NoError(t, err)
	require.NoError(t, w.feed(p, 9))
	p.env.out.(*process).hooks = func(point string) {
		if point == PointStored { // dies before the output of offset 0 is sent
			p.env.out.(*process).dead = true
		}
	}
	require.Error(t, flushNow(p))
	require.Empty(t, w.log(wEvents).recs)

	w.topics[wInput] = &logFile{}
	w.report("k", 2) // offset 0 again
	id := codecs.TopicID{2}
	key, value := AdoptRecord(id)
	w.append(wTable, key, value, nil)
	for range 2 { // the second time it is adopted already
		proc := w.live()
		e := w.env(proc, &tally{}, nil, rules{})
		e.topicID = id
		disk := newMemory()
		disk.p = proc
		p, err = takeOver(t.Context(), e, 0, disk)
		require.NoError(t, err)
		require.NoError(t, w.feed(p, 9))
		require.NoError(t, settle(p))
	}
	var srcs []string
	for _, r := range w.log(wEvents).recs {
		v, _ := r.Header(codecs.HeaderSrc)
		srcs = append(srcs, string(v))
	}
	old := codecs.Src{Group: "w.controller", TopicID: wTopicID}.String()
	require.Equal(t, []string{old, codecs.Src{Group: "w.controller", TopicID: id}.String()}, srcs, "the old output once, then the new one")
	rows, err := w.table(wTable)
	require.NoError(t, err)
	env, row, err := ParseEnvelope(rows["k"].Value)
	require.NoError(t, err)
	require.EqualValues(t, 0, env.Applied)
	require.True(t, bytes.Contains(row, []byte(`"Count":2`)), "%s", row)
}

func TestNewerFormatIsNotTakenOver(t *testing.T) {
	w := newWorld(1)
	w.append(wTable, []byte("k"), codecs.AppendRow(nil, codecs.RowHeader{Format: codecs.RowFormat + 1}, nil, nil), nil)
	_, err := w.own(w.live(), newMemory(), &tally{}, nil, rules{})
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorIs(t, err, codecs.ErrNewFormat)
}

func TestForeignRecordsInTheTableDoNotCount(t *testing.T) {
	w := newWorld(1)
	w.report("k", 1)
	p := w.ownNow(t, newMemory(), rules{})
	w.append(wTable, []byte("k"), []byte("foreign"), nil)
	w.append(wTable, []byte("other"), []byte("foreign"), nil)
	w.append(wTable, []byte("k"), nil, nil)
	require.NoError(t, p.lookForStrangers(t.Context()))
	w.compact(wTable)
	w.ownNow(t, newMemory(), rules{})
	require.NoError(t, w.verdict())
}

func TestInputDeletedBeforeItWasReadIsReported(t *testing.T) {
	w := newWorld(1)
	for i := range uint32(4) {
		w.report("k", i)
	}
	l := w.log(wInput)
	l.recs, l.gone = l.recs[2:], 2
	p := w.ownNow(t, newMemory(), rules{})
	require.EqualValues(t, 4, p.done.Offset)
	w.report("k", 9)
	w.report("k", 10)
	l.recs, l.gone = l.recs[3:], 5
	p = w.ownNow(t, newMemory(), rules{})
	require.EqualValues(t, 6, p.done.Offset)
	require.InDelta(t, 1, counterValue(t, p.m.lost), 0)
}

var errGhost = errors.New("ghost")

func deleteNulls(recs []*codecs.Record) []*codecs.Record {
	return slices.DeleteFunc(recs, func(r *codecs.Record) bool { return r.Value == nil })
}

func counterValue(t testing.TB, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	require.NoError(t, c.Write(&m))
	return m.Counter.GetValue()
}

// TestHeaderTakesAbsoluteCounts: a header that is behind its part, as a release that wrote parts first could leave it,
// comes right when the inputs are read again. One that counts what an event adds does not.
func TestHeaderTakesAbsoluteCounts(t *testing.T) {
	check := func(deltas bool) string {
		w := newWorld(1)
		m := &tally{deltas: deltas}
		w.report("k", 1)
		p, err := w.own(w.live(), newMemory(), m, nil, rules{})
		require.NoError(t, err)
		require.NoError(t, w.feed(p, 1))
		require.NoError(t, flushNow(p))
		w.report("k", 2)
		require.NoError(t, w.feed(p, 1))
		require.NoError(t, flushNow(p))
		l := w.log(wTable)
		last := slices.IndexFunc(l.recs, func(r *codecs.Record) bool { return r.Offset == l.end-2 })
		require.Equal(t, "k", string(l.recs[last].Key), "the header, before its part")
		l.recs = slices.Delete(l.recs, last, last+1)
		p, err = w.own(w.live(), newMemory(), m, nil, rules{})
		require.NoError(t, err)
		require.NoError(t, w.feed(p, 9))
		require.NoError(t, settle(p))
		rows, err := w.table(wTable)
		require.NoError(t, err)
		return string(rows["k"].Value)
	}
	require.Contains(t, check(false), `"Count":2`)
	require.NotContains(t, check(true), `"Count":2`)
}
