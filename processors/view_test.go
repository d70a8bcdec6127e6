package processors

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/apache"
)

// follow runs a view until the test's end or until stop.
func (d *deployment) follow(dir string, edit ...func(*ViewConfig)) (v *View, stop func()) {
	d.t.Helper()
	cfg := ViewConfig{Bootstrap: []string{d.bootstrap}, Prefix: d.prefix, Machine: &tally{}, DataDir: dir, Logger: d.config(&tally{}).Logger}
	for _, e := range edit {
		e(&cfg)
	}
	v, err := NewView(cfg)
	require.NoError(d.t, err)
	return v, d.runs(v.Run)
}

func (d *deployment) runs(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stopped := false
	stop = func() {
		cancel()
		if !stopped {
			stopped = true
			require.NoError(d.t, <-done)
		}
	}
	d.t.Cleanup(stop)
	return stop
}

// state waits until the view's state is as wanted.
func (d *deployment) state(v *View, what string, want func(s ViewState) bool) {
	d.t.Helper()
	require.Eventually(d.t, func() bool { return want(v.State()) }, time.Minute, 5*time.Millisecond, what)
}

func isReady(s ViewState) bool { return s.Ready && s.Connected }

// row returns a tally row of the view, nil = none.
func (d *deployment) row(v *View, key string) *tallyRow {
	d.t.Helper()
	r, ok, err := v.Get(key)
	require.NoError(d.t, err)
	if !ok {
		return nil
	}
	return r.Row.(*tallyRow)
}

func TestViewFollowsTheTable(t *testing.T) {
	d := deploy(t)
	p, _ := d.start(d.config(&tally{}))
	for i := range 20 {
		d.send(d.report(fmt.Sprint("b", i), 1, 2, 3, 200))
	}
	d.settled(p)
	dir := t.TempDir()
	v, stop := d.follow(dir)
	d.state(v, "loaded", isReady)
	for i := range 20 {
		require.Equal(t, 4, d.row(v, fmt.Sprint("b", i)).Count)
	}
	require.Nil(t, d.row(v, "none"))

	// Live: a change wakes, and shows.
	changed, quiet := v.Watch("b7")
	d.send(d.report("b7", 4))
	<-changed
	require.Eventually(t, func() bool { return d.row(v, "b7").Count == 5 }, 10*time.Second, time.Millisecond)
	quiet()
	stop()
	_, _, err := v.Get("b7")
	require.ErrorIs(t, err, ErrViewNotReady, "a view that has stopped answers nothing")

	// Again from the same files: only what is new is read.
	d.send(d.report("b8", 4))
	d.settled(p)
	v, _ = d.follow(dir)
	d.state(v, "loaded again", isReady)
	require.Equal(t, 5, d.row(v, "b7").Count)
	require.Equal(t, 5, d.row(v, "b8").Count)
}

func TestViewScansInKeyOrderOverPartitions(t *testing.T) {
	d := deploy(t)
	p, _ := d.start(d.config(&tally{}))
	var want []string
	for i := range 30 {
		id := fmt.Sprintf("b-%02d", i)
		want = append(want, id)
		d.send(d.report(id, 1, 70, 140)) // three parts each: the scan leaps over them
	}
	d.settled(p)
	v, _ := d.follow(t.TempDir())
	d.state(v, "loaded", isReady)
	for _, n := range []int{1, 7, 30, 100} {
		var got []string
		for after := ""; ; {
			page, next, err := v.Scan(after, n)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page), n)
			for _, r := range page {
				got = append(got, r.Key)
				require.Equal(t, 3, r.Row.(*tallyRow).Count)
			}
			if next == "" {
				break
			}
			after = next
		}
		require.Equal(t, want, got, "pages of %d", n)
	}
	prefix := "b-03\x00r\x00"
	var parts []string
	require.NoError(t, v.Parts(prefix, codecs.ChunkKey("b-03", "r", 1), func(r ViewRow) bool {
		parts = append(parts, r.Row.String())
		return true
	}))
	require.Equal(t, []string{"[70]", "[140]"}, parts)
}

func TestViewKnowsWhichInputsItHasReached(t *testing.T) {
	d := deploy(t)
	p, _ := d.start(d.config(&tally{}))
	v, _ := d.follow(t.TempDir())
	d.state(v, "loaded", isReady)
	part := codecs.Partition([]byte("b1"), testPartitions)
	reached := func(key string, offset int64) bool {
		ok, err := v.Reached(key, part, offset)
		require.NoError(t, err)
		return ok
	}
	require.False(t, reached("b1", 0))
	changed, quiet := v.Watch("b1")
	defer quiet()
	d.send(d.report("b1", 1), d.event("b1", codecs.TypeBatchCommand, &codecs.BatchCommand{Id: "c", Verb: "nothing"}))
	for !reached("b1", 1) {
		<-changed
	}
	require.False(t, reached("b1", 2))
	require.False(t, reached("other", 9))
	d.settled(p)
	for !reached("", 1) { // the position row alone says it too
		<-changed
	}
	ok, err := v.Reached("b1", 99, 0)
	require.NoError(t, err)
	require.False(t, ok)
}

// A zombie's row stands behind a newer claim: the view keeps what the owner wrote.
func TestViewLeavesOutStaleRecords(t *testing.T) {
	d := deploy(t)
	p, stop := d.start(d.config(&tally{}))
	d.send(d.report("b1", 1))
	d.settled(p)
	stop()
	p, stop = d.start(d.config(&tally{}))
	d.send(d.report("b1", 2, 3))
	d.settled(p)
	stop()
	table, part := codecs.Table(d.prefix, codecs.GroupController), codecs.Partition([]byte("b1"), testPartitions)
	old, err := (&tallyRow{Count: 1}).AppendBinary(nil)
	require.NoError(t, err)
	zombie := codecs.Record{Topic: table, Partition: part, Key: []byte("b1"),
		Value: codecs.AppendRow(nil, codecs.RowHeader{Format: codecs.RowFormat, Claim: 0, Applied: 0}, old, nil)}
	foreign := codecs.Record{Topic: table, Partition: part, Key: []byte("b1"), Value: []byte("hello")}
	tombstone := codecs.Record{Topic: table, Partition: part, Key: []byte("b1"), Headers: claimHeader(0)}
	d.send(zombie, foreign, tombstone)
	v, _ := d.follow(t.TempDir())
	d.state(v, "loaded", isReady)
	require.Equal(t, 3, d.row(v, "b1").Count)
}

func TestViewRefusesRowsOfANewerRelease(t *testing.T) {
	d := deploy(t)
	d.send(codecs.Record{Topic: codecs.Table(d.prefix, codecs.GroupController), Partition: 0, Key: []byte("b1"),
		Value: codecs.AppendRow(nil, codecs.RowHeader{Format: codecs.RowFormat + 1}, nil, nil)})
	v, _ := d.follow(t.TempDir())
	d.state(v, "refused", func(s ViewState) bool { return !s.Ready && errors.Is(s.Err, codecs.ErrNewFormat) })
	_, _, err := v.Get("b1")
	require.ErrorIs(t, err, ErrViewNotReady)
}

func TestViewShowsQuarantine(t *testing.T) {
	d := deploy(t)
	p, _ := d.start(d.config(&tally{}))
	d.send(d.report("b1", 1), d.event("b1", codecs.TypeBatchCommand, &codecs.BatchCommand{Id: "c", Verb: "panic"}))
	d.settled(p)
	v, _ := d.follow(t.TempDir())
	d.state(v, "loaded", isReady)
	r, ok, err := v.Get("b1")
	require.NoError(t, err)
	require.True(t, ok && r.Quarantined)
}

// While the fetches of the table are cut, nothing is served at first; later, what was seen last, and it says so.
func TestViewIsHonestWithoutTheBroker(t *testing.T) {
	t.Setenv(apache.EnvBootstrap, "") // fetches are cut inside the embedded broker
	d := deploy(t)
	p, _ := d.start(d.config(&tally{}))
	d.send(d.report("b1", 1))
	d.settled(p)
	var cut atomic.Bool
	cut.Store(true)
	cluster := d.broker.Cluster()
	cluster.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		f := r.(*kmsg.FetchRequest)
		if cut.Load() && len(f.Topics) > 0 && f.Topics[0].Topic == codecs.Table(d.prefix, codecs.GroupController) {
			return nil, errors.New("cut"), true
		}
		return nil, nil, false
	})
	v, _ := d.follow(t.TempDir())
	require.Never(t, func() bool { return v.State().Ready }, 300*time.Millisecond, 10*time.Millisecond)
	_, _, err := v.Get("b1")
	require.ErrorIs(t, err, ErrViewNotReady)
	_, _, err = v.Scan("", 10)
	require.ErrorIs(t, err, ErrViewNotReady)
	cut.Store(false)
	d.state(v, "loaded", isReady)
	require.Equal(t, 1, d.row(v, "b1").Count)

	cut.Store(true)
	d.state(v, "noticed", func(s ViewState) bool { return s.Ready && !s.Connected })
	require.Never(t, func() bool { return v.State().Connected }, viewProven, 5*time.Millisecond, "while it tries again")
	require.Equal(t, 1, d.row(v, "b1").Count, "what was seen last")
	cut.Store(false)
	d.state(v, "connected again", isReady)
	d.send(d.report("b1", 2))
	require.Eventually(t, func() bool { return d.row(v, "b1").Count == 2 }, time.Minute, 5*time.Millisecond)
}

// A recreated table, and a damaged copy, are read again from the beginning: no ghosts.
func TestViewBeginsAgain(t *testing.T) {
	d := deploy(t)
	p, stop := d.start(d.config(&tally{}))
	d.send(d.report("b1", 1))
	d.settled(p)
	stop()
	dir := t.TempDir()
	v, halt := d.follow(dir)
	d.state(v, "loaded", isReady)
	halt()

	files, err := filepath.Glob(filepath.Join(dir, "views", "*", "[0-9]*", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		require.NoError(t, os.WriteFile(f, []byte("damaged"), 0o600))
	}
	v, halt = d.follow(dir)
	d.state(v, "repaired", isReady)
	require.Equal(t, 1, d.row(v, "b1").Count)
	halt()

	table := codecs.Table(d.prefix, codecs.GroupController)
	admin := kadm.NewClient(d.client)
	_, err = admin.DeleteTopics(context.Background(), table)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := admin.CreateTopic(context.Background(), testPartitions, -1, nil, table)
		return err == nil
	}, time.Minute, 50*time.Millisecond)
	v, _ = d.follow(dir)
	d.state(v, "loaded", isReady)
	require.Nil(t, d.row(v, "b1"))
}

func TestViewsShareADirectory(t *testing.T) {
	d := deploy(t)
	p, _ := d.start(d.config(&tally{}))
	d.send(d.report("b1", 1))
	d.settled(p)
	dir := t.TempDir()
	one, stop := d.follow(dir)
	d.state(one, "first", isReady)
	two, _ := d.follow(dir)
	d.state(two, "second", isReady)
	stop()
	require.Equal(t, 1, d.row(two, "b1").Count)
	again, _ := d.follow(dir)
	d.state(again, "first again", isReady)
	dirs, err := filepath.Glob(filepath.Join(dir, "views*"))
	require.NoError(t, err)
	require.Len(t, dirs, 2, "the folder that is free again is used again")
}

func TestTopicViewKeepsTheLastValue(t *testing.T) {
	d := deploy(t)
	_, err := kadm.NewClient(d.client).CreateTopic(context.Background(), testPartitions, -1, nil, d.topic(codecs.TopicOutcomes))
	require.NoError(t, err)
	rec := func(i uint32, v string) codecs.Record {
		r := codecs.Record{Topic: d.topic(codecs.TopicOutcomes), Partition: -1, Key: []byte(codecs.OutcomeKey("b1", "r", i))}
		if v != "" {
			r.Value = []byte(v)
		}
		return r
	}
	d.send(rec(1, "a"), rec(2, "b"), rec(3, "c"), rec(1, "d"), rec(2, ""))
	v, err := NewTopicView(ViewConfig{Bootstrap: []string{d.bootstrap}, Prefix: d.prefix, DataDir: t.TempDir()}, codecs.TopicOutcomes)
	require.NoError(t, err)
	d.runs(v.Run)
	require.Eventually(t, func() bool { _, ok := v.Ready(); return ok }, time.Minute, 5*time.Millisecond)
	var got []string
	require.NoError(t, v.Range("b1\x00r\x00", codecs.OutcomeKey("b1", "r", 1), func(_ string, value []byte) bool {
		got = append(got, string(value))
		return true
	}))
	require.Equal(t, []string{"d", "c"}, got)
	b, err := v.Get(codecs.OutcomeKey("b1", "r", 3))
	require.NoError(t, err)
	require.Equal(t, "c", string(b))
}

// Rows whose keys go on after an id, as those of a customer's jobs do, belong to that id: all of them wake its watchers.
func TestViewWakesTheWatchersOfALongerKey(t *testing.T) {
	v, err := NewView(ViewConfig{Bootstrap: []string{"nowhere:1"}, Machine: &tally{}})
	require.NoError(t, err)
	changed, stop := v.Watch("acme\x00j-1")
	defer stop()
	other, stopOther := v.Watch("acme-2\x00j-1")
	defer stopOther()
	v.hub.changed(0, "acme\x00j-1")
	require.Len(t, changed, 1)
	require.Empty(t, other)
}
