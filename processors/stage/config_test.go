package stage_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/processors/stage"
	"github.com/quiesce/quiesce/topology"
)

func TestConfigReportsEveryFault(t *testing.T) {
	topo, err := topology.Load([]byte(`{topology: two, version: 1, source: a, topics: {a: {partitions: 3}}, stages: {copy: {in: [a], group: copy, client: goka}}}`), "")
	require.NoError(t, err)
	err = stage.Run(context.Background(), stage.Config{Topology: topo, Stage: "copy", Flow: stage.Flow{Attempts: -1}})
	for _, want := range []string{"stage copy: ", "declared with client: goka", "no bootstrap server", "no handler", "a negative number in flow"} {
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, stage.Config{Topology: topo, Stage: "nope"}.Validate(), `no stage "nope"`)
	require.ErrorContains(t, stage.Config{}.Validate(), "no topology")
}

// A topic with fewer partitions than are declared can never work: Run says so instead of trying again.
func TestTopicsThatAreNotAsDeclaredEndTheStage(t *testing.T) {
	k := setup(t, twoStages)
	larger := *k.topo
	larger.Topics = map[string]topology.Topic{k.topo.Source: {Partitions: 9}, k.name("b"): {Partitions: 3}}
	err := stage.Run(context.Background(), stage.Config{Topology: &larger, Stage: "copy", Bootstrap: k.bootstrap, Prefix: k.prefix,
		Handler: end, Log: k.log})
	require.ErrorContains(t, err, "has 3 partitions, 9 are declared")
}

// A topic that is not there yet is waited for.
func TestATopicThatIsNotThereYetIsWaitedFor(t *testing.T) {
	k := setup(t, twoStages)
	f := k.follow()
	late := k.name("late")
	topo := *k.topo
	topo.Topics = map[string]topology.Topic{k.topo.Source: {Partitions: 3}, late: {Partitions: 2}}
	topo.Stages = map[string]topology.Stage{
		"copy":  {In: []string{k.topo.Source}, Out: []string{late}, Group: k.name("copy")},
		"count": {In: []string{late}, Group: k.name("count")},
	}
	k.topo = &topo
	k.run("copy", k.forward("copy"))
	k.run("count", end)
	// Nothing tells when they have looked: they may find the topic at once, or must have tried again.
	timer := time.NewTimer(50 * time.Millisecond)
	<-timer.C
	k.create(late, 2)
	k.feed("b-1", "ledger", 50)
	require.Equal(t, map[string]int{"ok": 50}, f.completed(k, "b-1").counts())
}

func TestCountersCountByUnit(t *testing.T) {
	k := setup(t, twoStages)
	f := k.follow()
	c := &stage.Counters{}
	in := k.run("copy", func(ctx context.Context, r *stage.Record) ([]stage.Output, error) {
		switch {
		case r.Index < 5:
			return nil, stage.NoRetry(context.DeadlineExceeded)
		case r.Index < 8:
			return nil, stage.Skip
		case r.Attempt < 2:
			panic("once")
		}
		return k.forward("copy")(ctx, r)
	}, func(cfg *stage.Config) { cfg.Counters = c })
	k.run("count", end)
	k.feed("b-1", "ledger", 40)
	k.feed("b-2", "markers", 40)
	f.completed(k, "b-1")
	f.completed(k, "b-2")
	require.NoError(t, in.stop())
	units := c.Units()
	require.Len(t, units, 3)
	ends, err := k.admin.ListEndOffsets(context.Background(), k.topo.Source)
	require.NoError(t, err)
	for name, n := range units {
		require.Equal(t, "copy", name.Stage)
		require.EqualValues(t, 1, n.Ended)
		require.EqualValues(t, 1, n.Markers)
		last, _ := ends.Lookup(name.Topic, name.Partition)
		require.Equal(t, last.Offset, n.Committed)
	}
	total := c.Total()
	total.Committed = 0
	require.Equal(t, stage.Count{Consumed: 80, Failed: 10, Skipped: 6, Produced: 64, Retries: 64, Markers: 3, Ended: 3, DeadLetter: 10}, total)
}
