package processors

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
)

// dead returns the dead letters by input offset.
func (w *world) dead(t *testing.T) map[int64]*codecs.Record {
	t.Helper()
	all := map[int64]*codecs.Record{}
	for _, rec := range w.log(wDead).recs {
		v, ok := rec.Header(codecs.HeaderDeadOffset)
		require.True(t, ok)
		var n int64
		_, err := fmt.Sscan(string(v), &n)
		require.NoError(t, err)
		all[n] = rec
	}
	return all
}

func TestPoisonEndsInTheDeadLetter(t *testing.T) {
	w := newWorld(1)
	valid, err := codecs.Encode(wInput, "k", "/test", &codecs.Event{Type: codecs.TypeBatchReport, ID: "x", Data: reportOf(1)})
	require.NoError(t, err)
	retyped := func(typ string) []codecs.Header {
		hs := append([]codecs.Header(nil), valid.Headers...)
		for i := range hs {
			if hs[i].Key == codecs.HeaderType {
				hs[i].Value = []byte(typ)
			}
		}
		return hs
	}
	poison := []struct {
		name, reason string
		key, value   []byte
		headers      []codecs.Header
	}{
		{"no key", "without key", nil, valid.Value, valid.Headers},
		{"empty key", "without key", []byte{}, valid.Value, valid.Headers},
		{"key of zeros", "without key", []byte{0, 'x'}, valid.Value, valid.Headers},
		{"no type", "without ce_type", []byte("k"), valid.Value, nil},
		{"unknown type", "unknown event type", []byte("k"), valid.Value, retyped("quiesce.batch.unheard.v1")},
		{"future version", "newer than this release", []byte("k"), valid.Value, retyped("quiesce.batch.report.v2")},
		{"undecodable", "does not decode", []byte("k"), []byte{0xff, 0xff}, valid.Headers},
		{"null", "null value", []byte("k"), nil, valid.Headers},
		{"codec panics", "panicked: codec", []byte("k"), []byte("panic"), valid.Headers},
	}
	w.report("k", 7)
	for _, p := range poison {
		w.append(wInput, p.key, p.value, append(p.headers[:len(p.headers):len(p.headers)], codecs.Header{Key: "mine", Value: []byte("1")}, codecs.Header{Key: "mine", Value: []byte("2")}))
		w.report("k", 7)
	}
	part := w.ownNow(t, newMemory(), rules{})
	dead := w.dead(t)
	for i, p := range poison {
		offset := int64(2*i + 1)
		rec := dead[offset]
		require.NotNil(t, rec, p.name)
		reason, _ := rec.Header(codecs.HeaderDeadReason)
		require.Contains(t, string(reason), p.reason, p.name)
		require.Equal(t, p.value == nil, rec.Value == nil, p.name)
		require.True(t, bytes.Equal(p.value, rec.Value) && bytes.Equal(p.key, rec.Key), p.name)
		n := len(p.headers)
		require.Equal(t, append([]codecs.Header{}, p.headers...), rec.Headers[:n:n], p.name)
		require.Equal(t, "1", string(rec.Headers[n].Value), "repeated headers are kept, in order")
		require.Equal(t, "2", string(rec.Headers[n+1].Value))
		topic, _ := rec.Header(codecs.HeaderDeadTopic)
		require.Equal(t, wInput, string(topic))
	}
	require.Len(t, dead, len(poison))
	require.InDelta(t, len(poison), counterValue(t, part.m.dead), 0)
	rows, err := w.table(wTable)
	require.NoError(t, err)
	require.Contains(t, string(rows["k"].Value), fmt.Sprintf(`"Steps":%d`, len(poison)+1), "the neighbours are taken")
}

func TestWrongPartitionIsMovedOnce(t *testing.T) {
	rule(t, rules{noReroute: true}, func(t *testing.T, off rules) error {
		w := newWorld(1)
		e := w.env(w.live(), &tally{}, nil, off)
		e.partitions = 8
		p := newPart(e, 0, newMemory())
		p.marks, p.st.(*memory).p = marks{}, e.out.(*process)
		key := "k0"
		for i := 0; codecs.Partition([]byte(key), 8) == 0; i++ {
			key = fmt.Sprint("k", i)
		}
		w.report(key, 1)
		again, err := codecs.Encode(wInput, key, "/test", &codecs.Event{Type: codecs.TypeBatchReport, ID: "x", Data: reportOf(2)})
		require.NoError(t, err)
		w.append(wInput, []byte(key), again.Value, append(again.Headers, codecs.Header{Key: codecs.HeaderMoved, Value: []byte("3")}))
		require.NoError(t, w.feed(p, 2))
		require.NoError(t, flushNow(p))
		moved := w.log(wInput).recs[2:]
		if len(moved) != 1 || w.dead(t)[1] == nil {
			return fmt.Errorf("%d records moved, dead letters %v", len(moved), w.dead(t))
		}
		from, ok := moved[0].Header(codecs.HeaderMoved)
		require.True(t, ok)
		require.Equal(t, "0", string(from))
		require.Equal(t, w.log(wInput).recs[0].Value, moved[0].Value)
		require.Empty(t, p.cache.rows, "a moved record never makes a row")
		return nil
	})
}

// localTally keeps one row per partition of its input.
type localTally struct{ tally }

func (*localTally) Local() bool { return true }
func (m *localTally) Decode(rec *codecs.Record, ev *codecs.Event) error {
	err := m.tally.Decode(rec, ev)
	ev.Key = fmt.Sprint(rec.Partition, "\x00row")
	return err
}
func (*localTally) Parts(Row, int64, *codecs.Event) []string { return nil }

func TestLocalMachineTakesEveryRecordWhereItIs(t *testing.T) {
	w := newWorld(1)
	e := w.env(w.live(), &localTally{}, nil, rules{})
	e.partitions = 8
	p := newPart(e, 0, newMemory())
	p.marks, p.st.(*memory).p = marks{}, e.out.(*process)
	for i := range 8 { // on most of these partitions no record belongs to 0
		ev := codecs.Event{Type: codecs.TypeBatchSeal, ID: fmt.Sprint(i), Data: &codecs.BatchSeal{Run: "r", Total: 9}}
		rec, err := codecs.Encode(wInput, fmt.Sprint("k", i), "/test", &ev)
		require.NoError(t, err)
		w.append(wInput, rec.Key, rec.Value, rec.Headers)
	}
	require.NoError(t, w.feed(p, 8))
	require.NoError(t, flushNow(p))
	require.Len(t, w.log(wInput).recs, 8, "nothing is moved")
	require.Len(t, p.cache.rows, 1)
	e2 := &entry{key: "0\x00row"}
	v, err := p.st.Get(e2.key)
	require.NoError(t, err)
	require.NoError(t, p.decode(e2, v))
	require.False(t, e2.Part, "a key with 0x00 is a header all the same")
	require.Contains(t, e2.row.String(), `"Steps":8`)
}

// fails feeds a part, rebuilding it when the machine fails, until all inputs are taken.
func (w *world) persist(t *testing.T, disk *memory) *part {
	t.Helper()
	f := newFaults()
	for range 10 {
		p, err := w.own(w.live(), disk, &tally{}, f, rules{})
		require.NoError(t, err)
		if err = w.feed(p, 1<<30); err == nil {
			err = settle(p)
		}
		if err == nil {
			return p
		}
		require.ErrorIs(t, err, errStep)
	}
	require.Fail(t, "the partition never runs")
	return nil
}

func TestFailingRowIsQuarantinedAtItsOffset(t *testing.T) {
	for _, verb := range []string{"panic", "grow", "flood"} {
		t.Run(verb, func(t *testing.T) {
			w := newWorld(1)
			w.report("k", 1)
			w.report("n", 1)
			at := w.command("k", verb)
			after := w.report("k", 2)
			w.report("n", 2)
			repair := w.command("k", "repair")
			w.report("k", 3)
			disk := newMemory()
			part := w.persist(t, disk)
			dead := w.dead(t)
			require.Len(t, dead, 2, "%v", dead)
			require.NotNil(t, dead[at])
			require.NotNil(t, dead[after])
			rows, err := w.table(wTable)
			require.NoError(t, err)
			env, row, err := ParseEnvelope(rows["k"].Value)
			require.NoError(t, err)
			require.False(t, env.Quarantined())
			require.EqualValues(t, repair+1, env.Applied)
			require.Contains(t, string(row), `"Count":2`, "what came before and after, not what was set aside")
			_, neighbour, err := ParseEnvelope(rows["n"].Value)
			require.NoError(t, err)
			require.Contains(t, string(neighbour), `"Count":2`)
			require.NotNil(t, part)

			w.persist(t, newMemory())
			require.Len(t, w.dead(t), 2, "no other one after a recovery")
		})
	}
}

func TestLargeDeadLetterIsNamedOnly(t *testing.T) {
	w := newWorld(1)
	w.append(wInput, []byte("k"), bytes.Repeat([]byte("x"), codecs.MaxDeadLetter), nil)
	w.ownNow(t, newMemory(), rules{})
	rec := w.dead(t)[0]
	require.Nil(t, rec.Value)
	sum, ok := rec.Header(codecs.HeaderDeadSHA256)
	require.True(t, ok)
	require.Len(t, sum, 64)
}
