package processors

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// bounds of an exploration. Every choice within them is taken.
type bounds struct {
	lives    int  // ownerships
	zombies  int  // former owners that may be asleep, or act, beside the present one
	crashes  int  // at any step; the death of all after any step is tried in any case
	cleans   int  // runs of the cleaner
	ages     int  // half a day passes and the cleaner takes null records away as well
	refusals int  // sends that fail, with and without the record in the log
	perCut   int  // inputs of a cut; 0 = any number
	overlap  bool // inputs are taken while a cut is in flight, too
	bare     bool // every owner starts on an empty disk
	older    bool // an owner may find a copy of the disk as it was after an earlier take-over
	states   int  // the exploration gives up behind so many distinct states; 0 = the whole space
}

// scenario is a short input log and what may happen while it is worked off.
type scenario struct {
	name       string
	inputs     func(w *world, key string) // key belongs to the partition
	status     bool                       // the status topic is written, too
	partitions int                        // 0 = 1; each has inputs like these
	bounds

	metrics *metrics
}

// exploration is what a walk through all interleavings saw.
type exploration struct {
	states    int      // distinct
	runs      int      // from the start to an end, or to a state seen before
	schedules *big.Int // different ways from the start to an end
	whole     bool     // the space was walked to its end
	fault     error
	path      []string // that shows the fault
}

func (e *exploration) String() string {
	f, _ := new(big.Float).SetInt(e.schedules).Float64()
	return fmt.Sprintf("%d distinct states, %d runs, %.3g schedules, whole space: %v", e.states, e.runs, f, e.whole)
}

// node of the graph of states.
type node struct {
	next []uint64
	ways *big.Int
}

// explore walks all interleavings of a scenario. The runtime cannot be copied in the middle of a step, so
// every branch is a new run from the start along the decisions that lead to it; a run ends where it meets a state that
// was seen before. In every new state all is checked (run.check).
func explore(sc *scenario, m mutant) *exploration {
	e := &exploration{schedules: new(big.Int)}
	x := &explorer{exploration: e, sc: sc, mutant: m, nodes: map[uint64]*node{}}
	sc.metrics = newMetrics(nil, "test")
	for id := range sc.count() {
		x.want = append(x.want, sc.expectations(id))
	}
	var first uint64
	open := [][]int16{nil}
	pick := rand.New(rand.NewPCG(1, 1))
	for len(open) > 0 {
		i := len(open) - 1
		if sc.states > 0 { // a part of the space: from all over it
			i = pick.IntN(len(open))
		}
		path := open[i]
		open[i] = open[len(open)-1]
		open = open[:len(open)-1]
		more, root := x.walk(path)
		if path == nil {
			first = root
		}
		if e.fault != nil {
			return e
		}
		if sc.states > 0 && e.states >= sc.states {
			e.schedules.SetInt64(int64(e.runs))
			return e
		}
		open = append(open, more...)
	}
	e.whole = true
	e.schedules = x.ways(first)
	return e
}

type explorer struct {
	*exploration
	sc     *scenario
	mutant mutant
	nodes  map[uint64]*node
	want   [][]folded
}

// walk repeats a path, and goes on along the first choices. It returns the paths that branch off on the way.
func (x *explorer) walk(path []int16) (more [][]int16, first uint64) {
	r := newRun(x.sc, x.mutant, x.want)
	defer r.close()
	x.runs++
	var from *node
	fail := func(err error) {
		x.fault = err
		x.path = r.told
	}
	for i := 0; ; i++ {
		if r.fault != nil {
			fail(r.fault)
			return nil, first
		}
		acts := r.actions()
		switch {
		case i < len(path)-1:
		case i == len(path)-1:
			from = x.nodes[r.hash()]
		default:
			h := r.hash()
			if i == 0 {
				first = h
			}
			if from != nil && !slices.Contains(from.next, h) {
				from.next = append(from.next, h)
			}
			if x.nodes[h] != nil {
				return more, first
			}
			from = &node{}
			x.nodes[h] = from
			x.states++
			if err := r.check(); err != nil {
				fail(err)
				return nil, first
			}
			if len(acts) == 0 {
				return more, first
			}
			for alt := len(acts) - 1; alt > 0; alt-- {
				more = append(more, append(slices.Clone(path[:i:i]), int16(alt)))
			}
			path = append(path[:i:i], 0)
		}
		r.do(acts[path[i]])
	}
}

// ways counts the paths from a state to all ends.
func (x *explorer) ways(h uint64) *big.Int {
	n := x.nodes[h]
	if n.ways != nil {
		return n.ways
	}
	n.ways = new(big.Int)
	if len(n.next) == 0 {
		n.ways.SetInt64(1)
	}
	for _, c := range n.next {
		n.ways.Add(n.ways, x.ways(c))
	}
	return n.ways
}

func (e *exploration) report(t *testing.T, name string) {
	t.Helper()
	if e.fault != nil {
		t.Logf("%s: %d states, %d runs: %.300v", name, e.states, e.runs, e.fault)
		return
	}
	t.Logf("%s: %s", name, e)
}

// TestAllInterleavings walks the short schedules with all rules on.
func TestAllInterleavings(t *testing.T) {
	for _, sc := range scenarios() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			e := explore(&sc, mutant{})
			e.report(t, sc.name)
			for i, what := range e.path {
				t.Log(i, what)
			}
			require.NoError(t, e.fault)
		})
	}
}

// TestExplorationIsRepeatable: the same decisions must lead to the same states, else a run that is repeated from the
// start is another run.
func TestExplorationIsRepeatable(t *testing.T) {
	sc := scenarios()[0]
	sc.states = 2000
	a, b := explore(&sc, mutant{}), explore(&sc, mutant{})
	require.NoError(t, errors.Join(a.fault, b.fault))
	require.Equal(t, a.runs, b.runs)
	require.Equal(t, a.states, b.states)
}
