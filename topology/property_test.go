package topology

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// dag draws a topology that is right in every mode but ledger: topics are numbered, a stage reads lower and writes
// higher ones, and every topic that nobody reads gets an end stage.
func dag(t *rapid.T) *Topology {
	x := &Topology{Name: "t", Version: 1, Source: "t00", Topics: map[string]Topic{}, Stages: map[string]Stage{}}
	partitions := rapid.Int32Range(0, 8)
	topics := 1
	name := func(i int) string { return fmt.Sprintf("t%02d", i) }
	add := func(s Stage) {
		id := fmt.Sprintf("s%02d", len(x.Stages))
		s.Group = "g." + id
		x.Stages[id] = s
	}
	x.Topics[name(0)] = Topic{Partitions: partitions.Draw(t, "partitions")}
	for range rapid.IntRange(0, 5).Draw(t, "stages") {
		in := rapid.SliceOfNDistinct(rapid.IntRange(0, topics-1), 1, min(topics, 3), rapid.ID).Draw(t, "in")
		s := Stage{}
		for _, i := range in {
			s.In = append(s.In, name(i))
		}
		low := slices.Max(in) + 1
		for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(low, topics+1), 0, 2, rapid.ID).Draw(t, "out") {
			for ; topics <= i; topics++ {
				x.Topics[name(topics)] = Topic{Partitions: partitions.Draw(t, "partitions")}
			}
			s.Out = append(s.Out, name(i))
		}
		add(s)
	}
	for _, n := range sortedKeys(x.Topics) {
		if n != x.Source && len(x.Writers(n)) == 0 {
			add(Stage{In: []string{x.Source}, Out: []string{n}})
		}
	}
	for _, n := range sortedKeys(x.Topics) {
		if len(x.Readers(n)) == 0 {
			add(Stage{In: []string{n}})
		}
	}
	return x
}

func TestRandomDAGsAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := dag(t)
		for _, mode := range []string{"", ModeMarkers, ModeCount, ModeCredit, ModeObserve} {
			require.NoError(t, x.Validate(mode), "%s\n%s", mode, x.Canonical())
		}
		order, err := x.Order()
		require.NoError(t, err)
		require.ElementsMatch(t, sortedKeys(x.Stages), order)
		for i, s := range order {
			for _, later := range order[i:] {
				require.False(t, x.feeds(later, s), "%s stands before %s\n%s", s, later, x.Canonical())
			}
		}
	})
}

// records counts by brute force how many records of one root each topic gets, if each stage sends one on per record.
func records(x *Topology) map[string]int {
	n := map[string]int{}
	var visit func(topic string)
	visit = func(topic string) {
		n[topic]++
		for _, s := range x.Readers(topic) {
			for _, out := range x.Outputs(s) {
				visit(out)
			}
		}
	}
	visit(x.Source)
	return n
}

// TestLedgerAgainstPathCounting: ledger is refused whenever a topic gets two records of one root, and where it is
// allowed, each leg is reached exactly once from every place that says it reaches it.
func TestLedgerAgainstPathCounting(t *testing.T) {
	allowed := 0
	rapid.Check(t, func(t *rapid.T) {
		x := dag(t)
		err := x.Validate(ModeLedger)
		most := slices.Max(slices.Collect(maps.Values(records(x))))
		joins := slices.ContainsFunc(sortedKeys(x.Stages), func(s string) bool {
			return len(x.Stages[s].In) > 1 && len(x.Outputs(s)) > 0
		})
		require.Equal(t, most > 1 || joins || len(x.Legs()) > MaxLegs, err != nil, "%v\n%s", err, x.Canonical())
		if err != nil {
			return
		}
		allowed++
		for _, stage := range sortedKeys(x.Stages) {
			for _, in := range x.Stages[stage].In {
				below := *x
				below.Source = in
				below.Stages = maps.Clone(x.Stages)
				for _, other := range x.Readers(in) {
					if other != stage {
						delete(below.Stages, other)
					}
				}
				var want []uint32
				got := records(&below)
				for i, l := range x.Legs() {
					if got[l.Topic] > 0 && (l.Topic != in || l.Stage == stage) {
						want = append(want, uint32(i))
					}
				}
				require.Equal(t, want, x.ReachableLegs(stage, in), "from %s/%s\n%s", stage, in, x.Canonical())
			}
		}
	})
	require.NotZero(t, allowed)
}

// TestInjectedFaultsAreNamed puts one to three faults of different kinds into a valid DAG: each is named by its path.
func TestInjectedFaultsAreNamed(t *testing.T) {
	kinds := map[string]func(x *Topology, stage string) (mode, path string){
		"bad stage id": func(x *Topology, _ string) (string, string) {
			x.Stages["a b"] = Stage{In: []string{x.Source}, Group: "g.bad"}
			return "", "stages.a b"
		},
		"version": func(x *Topology, _ string) (string, string) { x.Version = 0; return "", "version" },
		"unknown input": func(x *Topology, s string) (string, string) {
			edit(s, func(st *Stage) { st.In = append(slices.Clone(st.In), "nope") })(x)
			return "", fmt.Sprintf("stages.%s.in[%d]", s, len(x.Stages[s].In)-1)
		},
		"group twice": func(x *Topology, s string) (string, string) {
			x.Stages["zz"] = Stage{In: []string{x.Source}, Group: x.Stages[s].Group}
			return "", "stages.zz.group"
		},
		"unknown client": func(x *Topology, s string) (string, string) {
			edit(s, func(st *Stage) { st.Client = "cobol" })(x)
			return "", "stages." + s + ".client"
		},
		"foreign": func(x *Topology, s string) (string, string) {
			edit(s, func(st *Stage) { st.Client = ClientForeign })(x)
			return ModeMarkers, "stages." + s + ".client"
		},
		"orphan topic": func(x *Topology, _ string) (string, string) { x.Topics["orphan"] = Topic{}; return "", "topics.orphan" },
		"orphan stage": func(x *Topology, _ string) (string, string) {
			x.Topics["island"] = Topic{}
			x.Stages["lonely"] = Stage{In: []string{"island"}, Group: "g.lonely"}
			return "", "stages.lonely"
		},
		"reserved": func(x *Topology, _ string) (string, string) {
			x.Topics["quiesce.x"] = Topic{Sink: true}
			return "", "topics.quiesce.x"
		},
		"cycle": func(x *Topology, s string) (string, string) {
			x.Topics["loop"] = Topic{}
			edit(s, func(st *Stage) {
				st.In = append(slices.Clone(st.In), "loop")
				st.Out = append(slices.Clone(st.Out), "pool")
			})(x)
			x.Topics["pool"] = Topic{}
			x.Stages["back"] = Stage{In: []string{"pool"}, Out: []string{"loop"}, Group: "g.back"}
			return ModeMarkers, "stages.back"
		},
		"partitions": func(x *Topology, _ string) (string, string) {
			x.Topics[x.Source] = Topic{Partitions: -3}
			return "", "topics." + x.Source + ".partitions"
		},
		"not co-partitioned": func(x *Topology, _ string) (string, string) {
			x.Topics["p5"], x.Topics["p6"] = Topic{Partitions: 5}, Topic{Partitions: 6}
			x.Stages["fork"] = Stage{In: []string{x.Source}, Out: []string{"p5", "p6"}, Group: "g.fork"}
			x.Stages["join"] = Stage{In: []string{"p5", "p6"}, Group: "g.join", Client: ClientGoka}
			return "", "stages.join.in"
		},
	}
	rapid.Check(t, func(t *rapid.T) {
		x := dag(t)
		victims := sortedKeys(x.Stages)
		mode, want := "", []string{}
		for _, k := range rapid.SliceOfNDistinct(rapid.SampledFrom(sortedKeys(kinds)), 1, 3, rapid.ID).Draw(t, "faults") {
			m, path := kinds[k](x, rapid.SampledFrom(victims).Draw(t, "stage"))
			want = append(want, path)
			if m != "" {
				mode = m
			}
		}
		err := x.Validate(mode)
		var faults Faults
		require.ErrorAs(t, err, &faults)
		var paths []string
		for _, f := range faults {
			paths = append(paths, f.Path)
		}
		require.Subset(t, paths, want, "%v\n%s", err, x.Canonical())
	})
}
