package markers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/processors/markers"
	"github.com/quiesce/quiesce/topology"
)

const seeds = 300

func topics(n int32, names ...string) map[string]topology.Topic {
	t := map[string]topology.Topic{}
	for _, name := range names {
		t[name] = topology.Topic{Partitions: n}
	}
	return t
}

// diamond is read -> {parse, digest} -> report, where report has two inputs and an output.
func diamond() *topology.Topology {
	return &topology.Topology{Name: "diamond", Version: 1, Source: "src", Topics: topics(3, "src", "files", "asts", "digests", "out"),
		Stages: map[string]topology.Stage{
			"read":   {In: []string{"src"}, Out: []string{"files"}, Group: "read"},
			"parse":  {In: []string{"files"}, Out: []string{"asts"}, Group: "parse"},
			"digest": {In: []string{"files"}, Out: []string{"digests"}, Group: "digest"},
			"report": {In: []string{"asts", "digests"}, Out: []string{"out"}, Group: "report"},
			"sink":   {In: []string{"out"}, Group: "sink"},
		}}
}

func line() *topology.Topology {
	return &topology.Topology{Name: "line", Version: 1, Source: "src", Topics: topics(2, "src", "mid", "out"),
		Stages: map[string]topology.Stage{
			"first":  {In: []string{"src"}, Out: []string{"mid"}, Group: "first"},
			"second": {In: []string{"mid"}, Out: []string{"out"}, Group: "second"},
			"third":  {In: []string{"out"}, Group: "third"},
		}}
}

// retrying sends some records round a retry topic: first -> retry -> again -> mid, beside first -> mid.
func retrying() *topology.Topology {
	return &topology.Topology{Name: "retrying", Version: 1, Source: "src", Topics: topics(2, "src", "mid", "retry"),
		Stages: map[string]topology.Stage{
			"first":  {In: []string{"src"}, Out: []string{"mid", "retry"}, Group: "first"},
			"again":  {In: []string{"retry"}, Out: []string{"mid"}, Group: "again"},
			"second": {In: []string{"mid"}, Group: "second"},
		}}
}

// scenario builds and runs one world.
type scenario func(seed uint64, w wrong) string

func onDiamond(seed uint64, w wrong) string {
	x := newWorld(seed, diamond(), w)
	x.start("a", 10)
	x.start("b", 1) // most partitions have no data
	x.start("empty", 0)
	return x.run()
}

// onRepeats crashes units after they sent END and before they committed: they send it again.
func onRepeats(seed uint64, w wrong) string {
	x := newWorld(seed, diamond(), w)
	x.repeats, x.crashes = true, 20
	for _, name := range x.order {
		x.actors[name].slow = x.rng.IntN(4) == 0
	}
	x.start("a", 10)
	return x.run()
}

func onLine(seed uint64, w wrong) string {
	x := newWorld(seed, line(), w)
	x.start("a", 12)
	return x.run()
}

// onGrowth grows two topics while a batch is open; the next batch uses all partitions, and instances that run already
// know nothing of it.
func onGrowth(seed uint64, w wrong) string {
	x := newWorld(seed, line(), w)
	x.start("old", 8)
	return x.run(func(step int) {
		switch step {
		case 15:
			x.now["src"], x.now["mid"] = 3, 3
			x.start("new", 12)
		case 40: // consumers find new partitions some time after producers
			x.discover()
		}
	})
}

func onRetry(seed uint64, w wrong) string {
	x := newWorld(seed, retrying(), w)
	if w.hidden {
		x.declared = retrying()
		delete(x.declared.Stages, "again")
		delete(x.declared.Topics, "retry")
		first := x.declared.Stages["first"]
		first.Out = []string{"mid"}
		x.declared.Stages["first"] = first
		for _, a := range x.actors {
			x.restart(a)
		}
	}
	x.start("a", 12)
	return x.run()
}

func onBuffer(seed uint64, w wrong) string {
	x := newWorld(seed, line(), w)
	x.buffers = "first"
	x.start("a", 12)
	return x.run()
}

// TestNoBatchEndsEarlyOrNever runs the right form on every scenario.
func TestNoBatchEndsEarlyOrNever(t *testing.T) {
	for name, s := range map[string]scenario{"diamond": onDiamond, "repeats": onRepeats, "line": onLine, "growth": onGrowth,
		"retry": onRetry, "buffer": onBuffer} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(seeds / 2) {
				require.Empty(t, s(seed, wrong{}), "seed %d: go test ./processors/markers -run '%s'", seed, t.Name())
			}
		})
	}
}

// killed runs a wrong form, which must show before the seeds are used up.
func killed(t *testing.T, s scenario, w wrong) {
	t.Helper()
	for seed := range uint64(seeds) {
		if fault := s(seed, w); fault != "" {
			t.Logf("seed %d: %s", seed, fault)
			return
		}
	}
	t.Fatalf("the wrong form %+v was not noticed in %d seeds", w, seeds)
}

func TestForwardAtTheFirstEndIsNoticed(t *testing.T) {
	killed(t, onDiamond, wrong{machine: markers.Mutants{ForwardFirst: true}})
}

func TestCountInsteadOfASetIsNoticed(t *testing.T) {
	killed(t, onRepeats, wrong{machine: markers.Mutants{CountEnds: true}})
}

func TestASetThatIsNotDurableIsNoticed(t *testing.T) {
	killed(t, onDiamond, wrong{machine: markers.Mutants{Volatile: true}})
}

func TestAnEndThatIsNotFlushedBehindTheDataIsNoticed(t *testing.T) {
	killed(t, onLine, wrong{machine: markers.Mutants{Unflushed: true}})
}

func TestReorderedSendsAreNoticed(t *testing.T) { killed(t, onLine, wrong{reordered: true}) }

func TestAPartitionAddedInTheMiddleIsNoticed(t *testing.T) {
	killed(t, onGrowth, wrong{machine: markers.Mutants{Unpinned: true}})
}

func TestALatePartitionReadFromItsEndIsNoticed(t *testing.T) {
	killed(t, onGrowth, wrong{latest: true})
}

func TestARetryTopicThatEndDoesNotTravelIsNoticed(t *testing.T) {
	killed(t, onRetry, wrong{hidden: true})
}

func TestABufferingStageThatDoesNotFlushIsNoticed(t *testing.T) {
	killed(t, onBuffer, wrong{noFlush: true})
}
