package markers_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/markers"
	"github.com/quiesce/quiesce/topology"
)

// wrong switches wrong forms of the world around the machine on.
type wrong struct {
	machine   markers.Mutants
	reordered bool // END is handed over behind the data without waiting for acks, by a producer that may reorder
	latest    bool // a partition that is discovered late is read from its end
	hidden    bool // the retry topic is not declared: END does not travel through it
	noFlush   bool // a stage that buffers does not flush at END
}

// entry is one record of a simulated log, or one step of a cut.
type entry struct {
	batch  markers.Batch
	plan   string
	id     string       // of a data record: its whole way, so that every record is told apart
	index  uint32       // of the root
	from   *codecs.Unit // of an END marker
	report *markers.End // of the control log
	target string       // topic; "" = control
	part   int32        // partition
	commit *markers.Cut // pseudo entry: the position is committed when it is reached
}

// actor is a unit with its process.
type actor struct {
	name     *codecs.Unit
	unit     *markers.Unit
	next     int64
	pipe     []entry // handed to the producer, not acked
	state    *codecs.UnitState
	buffered []entry
	slow     bool
}

// batch is one batch of the world, its plan and what a plain recursion says must be handled.
type batch struct {
	key      markers.Batch
	plan     codecs.Plan
	roots    []entry
	expected map[string]bool
	required map[string]bool // units in START
	ended    map[string]bool
}

// world is a topology on simulated logs, driven step by step by a seeded scheduler.
type world struct {
	rng      *rand.Rand
	wrong    wrong
	declared *topology.Topology // what the units know
	real     *topology.Topology // what happens
	now      topology.Partitions
	buffers  string // the stage that buffers
	logs     map[string][]entry
	actors   map[string]*actor
	order    []string
	batches  []*batch
	handled  map[string]bool
	fault    string
	crashes  int
	repeats  bool // crashes come between END and the commit, and a unit that has sent END is slow from then on
}

func newWorld(seed uint64, t *topology.Topology, w wrong) *world {
	x := &world{rng: rand.New(rand.NewPCG(seed, 1)), wrong: w, declared: t, real: t, now: topology.Partitions{},
		logs: map[string][]entry{}, actors: map[string]*actor{}, handled: map[string]bool{}, crashes: 5}
	for name, topic := range t.Topics {
		x.now[name] = topic.Partitions
	}
	x.discover()
	return x
}

func at(topic string, p int32) string { return fmt.Sprintf("%s/%d", topic, p) }

// discover makes the units of partitions that have none.
func (x *world) discover() {
	for stage, s := range x.real.Stages {
		for _, topic := range s.In {
			for p := range x.now[topic] {
				name := &codecs.Unit{Stage: stage, Topic: topic, Partition: uint32(p)}
				if x.actors[name.Path()] != nil {
					continue
				}
				a := &actor{name: name}
				if x.wrong.latest {
					a.next = int64(len(x.logs[at(topic, p)]))
				}
				a.state = &codecs.UnitState{Position: a.next}
				x.restart(a)
				x.actors[name.Path()] = a
			}
		}
	}
	x.order = slices.Sorted(maps.Keys(x.actors))
}

// restart gives an actor the state that was committed last.
func (x *world) restart(a *actor) {
	t := x.declared
	if t.Stages[a.name.Stage].In == nil {
		t = x.real // a stage that the declaration does not know
	}
	u, err := markers.Load(markers.Config{Unit: a.name, Topologies: []*topology.Topology{t}, Counts: maps.Clone(x.now),
		Mutants: x.wrong.machine}, a.state)
	if err != nil {
		panic(err)
	}
	a.unit, a.next, a.pipe, a.buffered = u, a.state.Position, nil, nil
}

// start opens a batch of n roots with the partition counts of now.
func (x *world) start(id string, n int) *batch {
	b := &batch{key: markers.Batch{ID: id, Run: "r", Round: 1}, expected: map[string]bool{}, required: map[string]bool{}, ended: map[string]bool{},
		plan: codecs.Plan{Mode: "markers", Topology: x.declared.Name, Version: x.declared.Version, Feeders: 1, Partitions: maps.Clone(x.now)}}
	for _, set := range x.declared.Units(x.now) {
		for p := range set.Partitions {
			b.required[(&codecs.Unit{Stage: set.Stage, Topic: set.Topic, Partition: p}).Path()] = true
		}
	}
	src := x.real.Source
	for i := range n {
		e := entry{batch: b.key, plan: b.plan.String(), index: uint32(i), id: fmt.Sprintf("%s#%d", id, i), target: src,
			part: int32(i) % b.plan.Partitions[src]}
		b.roots = append(b.roots, e)
		x.expect(b, e)
	}
	for p := range b.plan.Partitions[src] {
		b.roots = append(b.roots, entry{batch: b.key, plan: b.plan.String(), target: src, part: p,
			from: &codecs.Unit{Stage: topology.FeederStage, Topic: src}})
	}
	x.batches = append(x.batches, b)
	return b
}

// expect follows a record through the topology by plain recursion.
func (x *world) expect(b *batch, e entry) {
	for _, stage := range x.real.Readers(e.target) {
		b.expected[stage+" "+e.id] = true
		for _, c := range x.children(stage, e) {
			x.expect(b, c)
		}
	}
}

// children is the handler of all stages: one record to each output; a retry topic gets every third root's only, and a
// record that went there goes nowhere else from that stage.
func (x *world) children(stage string, e entry) []entry {
	plan, err := codecs.ParsePlan(e.plan)
	if err != nil {
		panic(err)
	}
	var out []entry
	outs := x.real.Outputs(stage)
	retried := slices.Contains(outs, "retry") && e.index%3 == 0
	for i, topic := range outs {
		if slices.Contains(outs, "retry") && retried != (topic == "retry") {
			continue
		}
		n := plan.Partitions[topic]
		if n == 0 {
			n = x.now[topic]
		}
		c := e
		c.id, c.target = fmt.Sprintf("%s>%s:%s", e.id, stage, topic), topic
		c.part = int32(e.index*7+uint32(i)*3) % n
		out = append(out, c)
	}
	return out
}

// step lets one thing happen. It reports false when nothing can.
func (x *world) step() bool {
	var moves []func()
	waiting := false
	for _, b := range x.batches {
		if len(b.roots) > 0 {
			moves = append(moves, func() { x.append(b.roots[0]); b.roots = b.roots[1:] })
		}
	}
	for _, name := range x.order {
		a := x.actors[name]
		slow := x.repeats && (a.slow || x.ended(a)) && x.rng.IntN(50) > 0
		more := a.next < int64(len(x.logs[at(a.name.Topic, int32(a.name.Partition))]))
		waiting = waiting || more && slow
		if more && !slow {
			moves = append(moves, func() { x.take(a) })
		}
		if len(a.pipe) > 0 {
			moves = append(moves, func() { x.ack(a) }, func() { x.ack(a) })
		}
		if len(a.pipe) == 0 && a.unit.Position() > a.state.Position && a.unit.Position() > 0 {
			moves = append(moves, func() { x.cut(a) })
		}
		if a.unit.Due() {
			moves = append(moves, func() { x.cut(a) }, func() { x.cut(a) })
		}
		if x.repeats && x.crashes > 0 && len(a.pipe) > 0 && a.pipe[0].commit != nil && len(a.pipe[0].commit.Ends) > 0 {
			moves = append(moves, func() { x.crash(a) })
		}
		if !x.repeats && x.crashes > 0 && x.rng.IntN(40) == 0 {
			moves = append(moves, func() { x.crash(a) })
		}
	}
	if len(moves) == 0 {
		return waiting
	}
	moves[x.rng.IntN(len(moves))]()
	return true
}

// ended says whether a unit has reported the end of a batch.
func (x *world) ended(a *actor) bool {
	return slices.ContainsFunc(x.batches, func(b *batch) bool { return b.ended[a.name.Path()] })
}

// take handles the next record of a unit.
func (x *world) take(a *actor) {
	e := x.logs[at(a.name.Topic, int32(a.name.Partition))][a.next]
	pos := a.next
	a.next++
	if e.from != nil {
		due := a.unit.End(pos, e.batch, e.plan, e.from)
		if due && x.wrong.machine.Unflushed {
			x.finish(a, a.unit.Cut(), true)
		}
		return
	}
	x.handled[a.name.Stage+" "+e.id] = true
	out := x.children(a.name.Stage, e)
	a.unit.Data(pos, e.batch, e.plan, markers.Result{Produced: map[string]uint64{"n": uint64(len(out))}})
	if a.name.Stage != x.buffers {
		a.pipe = append(a.pipe, out...)
		return
	}
	if a.buffered = append(a.buffered, out...); len(a.buffered) >= 4 {
		a.pipe, a.buffered = append(a.pipe, a.buffered...), nil
	}
}

// cut takes the unit through the order of the package comment: behind what is in the pipe come the markers, the reports
// and the commit.
func (x *world) cut(a *actor) {
	if a.unit.Due() && !x.wrong.noFlush {
		a.pipe, a.buffered = append(a.pipe, a.buffered...), nil
	}
	if len(a.buffered) > 0 && !a.unit.Due() {
		return // a position behind buffered records is not durable
	}
	x.finish(a, a.unit.Cut(), false)
}

func (x *world) finish(a *actor, c markers.Cut, first bool) {
	var tail []entry
	for _, end := range c.Ends {
		for _, m := range end.Markers() {
			tag, _, err := codecs.ParseTag(m.Headers)
			if err != nil {
				panic(err)
			}
			tail = append(tail, entry{batch: markers.Batch{ID: tag.Batch, Run: tag.Run, Round: tag.Round}, plan: tag.Plan,
				from: tag.From, target: m.Topic, part: m.Partition})
		}
		tail = append(tail, entry{report: &end})
	}
	if first {
		a.pipe = append(tail, a.pipe...)
		return
	}
	a.pipe = append(append(a.pipe, tail...), entry{commit: &c})
}

// ack lets the oldest record of a pipe reach its log; a producer that reorders takes any before the commit.
func (x *world) ack(a *actor) {
	i := 0
	if x.wrong.reordered {
		limit := slices.IndexFunc(a.pipe, func(e entry) bool { return e.commit != nil })
		if limit > 1 {
			i = x.rng.IntN(limit)
		}
	}
	e := a.pipe[i]
	a.pipe = slices.Delete(slices.Clone(a.pipe), i, i+1)
	switch {
	case e.commit != nil:
		a.state = e.commit.State
	case e.report != nil:
		x.reported(e.report)
	default:
		x.append(e)
	}
}

func (x *world) append(e entry) {
	key := at(e.target, e.part)
	x.logs[key] = append(x.logs[key], e)
}

// reported is the controller: the set of units that reported, against the set of START.
func (x *world) reported(end *markers.End) {
	for _, b := range x.batches {
		if b.key != end.Batch {
			continue
		}
		b.ended[end.Unit.Path()] = true
		if b.complete() && x.fault == "" {
			for want := range b.expected {
				if !x.handled[want] {
					x.fault = fmt.Sprintf("EARLY: %s complete, but not handled: %s", b.key, want)
				}
			}
		}
	}
}

func (b *batch) complete() bool {
	if len(b.roots) > 0 {
		return false
	}
	for name := range b.required {
		if !b.ended[name] {
			return false
		}
	}
	return true
}

// crash kills a unit's process: a part of what is in the pipe still arrives, the rest is lost, and the unit goes on from
// its last commit.
func (x *world) crash(a *actor) {
	x.crashes--
	for n := x.rng.IntN(len(a.pipe) + 1); n > 0; n-- {
		x.ack(a)
	}
	x.restart(a)
}

// run drives the world until nothing can happen, and returns the fault, "" if there is none.
func (x *world) run(between ...func(step int)) string {
	for step := 0; x.fault == ""; step++ {
		if step > 100_000 {
			return "ENDLESS"
		}
		for _, fn := range between {
			fn(step)
		}
		if !x.step() {
			break
		}
	}
	if x.fault != "" {
		return x.fault
	}
	for _, b := range x.batches {
		if b.complete() {
			continue
		}
		var missing []string
		for name := range b.required {
			if !b.ended[name] {
				missing = append(missing, name)
			}
		}
		sort.Strings(missing)
		return fmt.Sprintf("STUCK: %s: no END from %v", b.key, missing)
	}
	return ""
}
