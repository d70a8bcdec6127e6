package markers_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/markers"
	"github.com/quiesce/quiesce/topology"
)

var (
	counts = topology.Partitions{"src": 2, "mid": 2, "out": 2}
	pinned = (&codecs.Plan{Mode: "markers", Topology: "line", Version: 1, Feeders: 1, Partitions: counts}).String()
	bat    = markers.Batch{ID: "b", Run: "r", Round: 1}
)

func config() markers.Config {
	return markers.Config{Unit: &codecs.Unit{Stage: "second", Topic: "mid", Partition: 1},
		Topologies: []*topology.Topology{line()}, Counts: counts}
}

func first(p uint32) *codecs.Unit { return &codecs.Unit{Stage: "first", Topic: "src", Partition: p} }

func fresh(t *testing.T) *markers.Unit {
	t.Helper()
	u, err := markers.New(config(), 0)
	require.NoError(t, err)
	return u
}

func TestEndIsDueWhenEverySourceHasSentIt(t *testing.T) {
	u := fresh(t)
	u.Data(0, bat, pinned, markers.Result{Produced: map[string]uint64{"out": 2}})
	require.False(t, u.End(1, bat, pinned, first(0)))
	require.False(t, u.End(2, bat, pinned, first(0)), "a repeat")
	u.Data(3, bat, pinned, markers.Result{Failed: true})
	require.Equal(t, "second/mid/1 at 4\n  b/r/1 1 of 2 sources, 2 consumed, 1 failed", u.String())
	require.Equal(t, []*codecs.Unit{first(1)}, u.Open(9)[0].Missing)
	require.Empty(t, u.Cut().Ends)
	require.True(t, u.End(4, bat, pinned, first(1)))

	c := u.Cut()
	require.EqualValues(t, 5, c.Position)
	require.Len(t, c.Ends, 1)
	require.Equal(t, "b/r/1 by second/mid/1 to outx2: 2 consumed, 1 failed", c.Ends[0].String())
	require.EqualValues(t, 2, c.Ends[0].Report().Produced["out"])
	require.Empty(t, u.Cut().Ends, "a batch ends once")
	require.Equal(t, "second/mid/1 at 5\n  b/r/1 ended", u.String())

	for i, m := range c.Ends[0].Markers() {
		tag, ok, err := codecs.ParseTag(m.Headers)
		require.True(t, ok && err == nil)
		require.Equal(t, "second/mid/1", tag.From.Path())
		require.Equal(t, pinned, tag.Plan)
		require.EqualValues(t, i, m.Partition)
		require.NotNil(t, m.Value, "empty, not null")
		require.Nil(t, m.Key)
	}
}

func TestRepeatsAfterTheEndChangeNothing(t *testing.T) {
	u := fresh(t)
	u.End(0, bat, pinned, first(0))
	u.End(1, bat, pinned, first(1))
	u.Cut()
	u.Data(2, bat, pinned, markers.Result{})
	require.False(t, u.End(3, bat, pinned, first(0)))
	require.False(t, u.End(4, bat, pinned, first(1)))
	require.Empty(t, u.Cut().Ends)
}

func TestEveryRunAndRoundEndsForItself(t *testing.T) {
	u := fresh(t)
	all := []markers.Batch{bat, {ID: "b", Run: "r", Round: 2}, {ID: "b", Run: "r2", Round: 1}, {ID: "c", Run: "r", Round: 1}}
	pos := int64(0)
	for p := range uint32(2) {
		for _, b := range all {
			require.Equal(t, p == 1, u.End(pos, b, pinned, first(p)))
			pos++
		}
	}
	var names []string
	for _, e := range u.Cut().Ends {
		names = append(names, e.Batch.String())
	}
	require.Equal(t, []string{"b/r/1", "b/r/2", "b/r2/1", "c/r/1"}, names)
}

func TestTheStateIsTheUnit(t *testing.T) {
	u := fresh(t)
	u.Data(0, bat, pinned, markers.Result{Failed: true, Produced: map[string]uint64{"out": 3}})
	u.End(1, bat, pinned, first(1))
	done := markers.Batch{ID: "done", Run: "r", Round: 1}
	u.End(2, done, "", first(0))
	u.End(3, done, "", first(1))
	b, err := proto.Marshal(u.Cut().State)
	require.NoError(t, err)
	state := &codecs.UnitState{}
	require.NoError(t, proto.Unmarshal(b, state))
	again, err := markers.Load(config(), state)
	require.NoError(t, err)
	require.Equal(t, u.String(), again.String())
	require.True(t, again.End(4, bat, pinned, first(0)), "the other half of the set was durable")
	require.EqualValues(t, 3, again.Cut().Ends[0].Counts.Produced["out"])
}

func TestSourcesThatAreNotUpstreamDoNotCount(t *testing.T) {
	u := fresh(t)
	for i, from := range []*codecs.Unit{first(2), {Stage: "third", Topic: "out"}, {Stage: "feeder", Topic: "src"}, nil} {
		require.False(t, u.End(int64(i), bat, pinned, from))
	}
	require.EqualValues(t, 4, u.Unknown())
	require.Zero(t, u.Open(9)[0].Seen)
}

func TestABatchOfAnUnknownVersionIsNeverAligned(t *testing.T) {
	for _, text := range []string{"nonsense", "markers;line@2;1;mid=2,out=2,src=2", "markers;other@1;1;mid=2,out=2,src=2",
		"markers;line@1;1;mid=2,out=2"} {
		u := fresh(t)
		require.False(t, u.End(0, bat, text, first(0)), text)
		require.False(t, u.End(1, bat, text, first(1)), text)
		require.Empty(t, u.Cut().Ends, text)
		require.Zero(t, u.Open(9)[0].Required)
	}
	cfg := config()
	next := line()
	next.Version = 2
	cfg.Topologies = []*topology.Topology{next, line()}
	u, err := markers.New(cfg, 0)
	require.NoError(t, err)
	u.End(0, bat, pinned, first(0))
	require.True(t, u.End(1, bat, pinned, first(1)), "an older version that is still declared")
}

func TestEveryFeederIsAnUpstreamOfTheSource(t *testing.T) {
	cfg := config()
	cfg.Unit = first(0)
	u, err := markers.New(cfg, 0)
	require.NoError(t, err)
	two := "markers;line@1;2;mid=2,out=2,src=2"
	require.False(t, u.End(0, bat, two, &codecs.Unit{Stage: topology.FeederStage, Topic: "src", Partition: 1}))
	require.True(t, u.End(1, bat, two, &codecs.Unit{Stage: topology.FeederStage, Topic: "src", Partition: 0}))
}

func TestDropForgetsARunUpToARound(t *testing.T) {
	u := fresh(t)
	second := markers.Batch{ID: "b", Run: "r", Round: 2}
	u.Data(0, bat, pinned, markers.Result{})
	u.End(1, second, pinned, first(0))
	u.Drop("b", "other", 9)
	u.Drop("b", "r", 1)
	require.Equal(t, "second/mid/1 at 2\n  b/r/2 1 of 2 sources, 0 consumed, 0 failed", u.String())
	u.End(2, second, pinned, first(1))
	u.Drop("b", "r", 2)
	require.False(t, u.Due())
	require.Empty(t, u.Cut().Ends, "the controller has closed it")
}

func TestNamesOfEndedBatchesAreBounded(t *testing.T) {
	u := fresh(t)
	pos := int64(0)
	for i := range 3 * markers.MaxEnded {
		b := markers.Batch{ID: fmt.Sprintf("b%d", i), Run: "r", Round: 1}
		u.End(pos, b, pinned, first(0))
		u.End(pos+1, b, pinned, first(1))
		pos += 2
		require.Len(t, u.Cut().Ends, 1)
	}
	state := u.Cut().State
	require.Len(t, state.Batches, markers.MaxEnded)
	require.Less(t, proto.Size(state), 64<<10)
}

func TestAUnitNeedsItsStage(t *testing.T) {
	cfg := config()
	cfg.Unit = &codecs.Unit{Stage: "second", Topic: "src"}
	_, err := markers.New(cfg, 0)
	require.ErrorContains(t, err, `stage "second" does not read topic "src"`)
	_, err = markers.Load(config(), &codecs.UnitState{Batches: []*codecs.UnitBatch{{Batch: "b", Run: "r", Round: 1, Plan: 3}}})
	require.ErrorContains(t, err, "plan 3 of 0")
}
