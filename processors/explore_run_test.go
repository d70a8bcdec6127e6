package processors

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/quiesce/quiesce/codecs"
)

// run is one history of the runtime on the partitions of a scenario, driven step by step.
type run struct {
	sc *scenario
	mutant
	want  [][]folded
	parts []*stretch
	told  []string
	fault error

	crashes, cleans, ages, refusals int // used up
}

// stretch is a partition with its owners, oldest first.
type stretch struct {
	*run
	id    int32
	w     *world
	lives []*life
	watch watch
}

func newRun(sc *scenario, m mutant, want [][]folded) *run {
	r := &run{sc: sc, mutant: m, want: want}
	for id := range sc.count() {
		s := &stretch{run: r, id: id, w: newWorld(1)}
		s.w.partitions, s.w.metrics = sc.count(), sc.metrics
		s.watch.init(s)
		sc.inputs(s.w, sc.keyOn(id))
		s.w.wrote = s.watch.wrote
		s.w.check = func(next int64) { r.fail(s.watch.durable("commit", next)) }
		r.parts = append(r.parts, s)
	}
	return r
}

// close ends the coroutines.
func (r *run) close() {
	for _, s := range r.parts {
		for _, l := range s.lives {
			l.end()
		}
	}
}

// action is one choice.
type action struct {
	what string
	s    *stretch
	l    *life
	arg  int
}

func (r *run) do(a action) {
	defer func() {
		if v := recover(); v != nil {
			r.fail(fmt.Errorf("PANIC: %v", v))
		}
	}()
	who := ""
	if a.l != nil {
		who = fmt.Sprintf(" owner %d %s", a.l.n, a.l.op)
	}
	r.told = append(r.told, fmt.Sprintf("%d: %s%s %d", a.s.id, a.what, who, a.arg))
	switch a.what {
	case "step":
		a.l.step()
	case "refuse":
		r.refusals++
		a.l.refuse = 1 + a.arg
		a.l.step()
	case "feed":
		a.l.check(a.s.w.feed(a.l.part, 1))
	case "flush":
		a.l.begin("flush", func() error { return flushNow(a.l.part) })
	case "look":
		a.l.begin("look", a.l.look)
	case "crash":
		r.crashes++
		for _, s := range r.parts { // the process dies, with all its partitions
			if a.l.n < len(s.lives) {
				s.lives[a.l.n].end()
			}
		}
	case "start":
		a.s.start(a.s.disks()[a.arg], newFaults())
	case "again":
		a.s.start(a.l.disk, a.l.faults)
	case "clean":
		r.cleans++
		a.s.w.compact(wTable)
		a.s.w.compact(wStatus)
	case "age":
		r.ages++
		a.s.w.age()
	}
}

// age lets half a day pass: the cleaner has taken the null records, too.
func (w *world) age() {
	w.now = w.now.Add(13 * 3600e9)
	for _, topic := range []string{wTable, wStatus} {
		w.compact(topic)
		l := w.log(topic)
		l.recs = slices.DeleteFunc(l.recs, func(r *codecs.Record) bool { return r.Value == nil && r.Offset != l.end-1 })
	}
}

func (r *run) fail(err error) {
	if r.fault == nil && err != nil {
		r.fault = err
	}
}

// actions lists what may happen next, in a fixed order; the first one makes the newest owner go on. A write to a disk
// can be seen by nobody but the owner and its heirs: all that others could do before it, they can do after it.
func (r *run) actions() (acts []action) {
	for _, s := range r.parts {
		for _, l := range s.lives {
			if l.private && !l.dead {
				return l.crash([]action{{what: "step", s: s, l: l}})
			}
		}
	}
	for _, s := range r.parts {
		acts = s.actions(acts)
	}
	return acts
}

func (s *stretch) actions(acts []action) []action {
	awake := 0
	for _, l := range slices.Backward(s.lives) {
		if l.dead {
			continue
		}
		awake++
		acts = l.actions(acts)
	}
	newest := s.newest()
	switch {
	case newest != nil && newest.dead && errors.Is(newest.ended, errStep): // the process is alive, the row is set aside
		acts = append(acts, action{what: "again", s: s, l: newest})
	case newest == nil, len(s.lives) < s.sc.lives && awake <= s.sc.zombies && (newest.part != nil || newest.dead):
		for i := range s.disks() {
			acts = append(acts, action{what: "start", s: s, arg: i})
		}
	}
	if newest != nil && newest.quiet() {
		if s.cleans < s.sc.cleans && s.w.dirty() {
			acts = append(acts, action{what: "clean", s: s})
		}
		if s.ages < s.sc.ages && awake == 1 {
			acts = append(acts, action{what: "age", s: s})
		}
	}
	return acts
}

// dirty says whether the cleaner has something to do.
func (w *world) dirty() bool {
	for _, topic := range []string{wTable, wStatus} {
		c := w.clone()
		c.compact(topic)
		if len(c.log(topic).recs) != len(w.log(topic).recs) {
			return true
		}
	}
	return false
}

func (s *stretch) newest() *life {
	if len(s.lives) == 0 {
		return nil
	}
	return s.lives[len(s.lives)-1]
}

// disks are what a new owner may find: nothing, what a dead owner left, an older copy.
func (s *stretch) disks() []*memory {
	all := []*memory{newMemory()}
	add := func(d *memory) {
		if d != nil && !slices.ContainsFunc(all, func(o *memory) bool { return o.hash() == d.hash() }) {
			all = append(all, d)
		}
	}
	if s.sc.bare {
		return all
	}
	for _, l := range slices.Backward(s.lives) {
		if l.dead {
			add(l.disk)
		}
		if s.sc.older {
			add(l.older)
		}
	}
	return all
}

func (s *stretch) start(disk *memory, f *faults) {
	d := disk.copy()
	d.p = s.w.live()
	l := &life{s: s, n: len(s.lives), disk: d, faults: f}
	s.lives = append(s.lives, l)
	l.begin("take over", l.takeOver)
}

// machine decides differently in every life, so that a decision taken twice shows.
func (s *stretch) machineOf(version string) Machine {
	m := &tally{vary: func() string { return version }}
	if s.mutant.machine != nil {
		s.mutant.machine(m)
	}
	return m
}

var seed = maphash.MakeSeed()

// hash tells states apart: all that can make a difference for what comes.
func (r *run) hash() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	fmt.Fprintln(&h, r.crashes, r.cleans, r.ages, r.refusals)
	for _, s := range r.parts {
		for _, topic := range []string{wTable, wStatus, wEvents, wDead} {
			l := s.w.log(topic)
			fmt.Fprintln(&h, topic, l.end, l.gone)
			for _, rec := range l.recs {
				maphash.WriteComparable(&h, s.watch.digests[rec])
			}
		}
		fmt.Fprintln(&h, s.w.now.UnixNano(), s.w.end(wInput))
		for _, l := range s.lives {
			l.hash(&h)
		}
	}
	return h.Sum64()
}

func (m *memory) hash() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	_ = m.Each(func(key, value []byte) error {
		fmt.Fprintln(&h, len(key), len(value))
		_, _ = h.Write(key)
		_, _ = h.Write(value)
		return nil
	})
	fmt.Fprintln(&h, m.at.Next, m.at.Claim, m.at.Written.UnixNano())
	return h.Sum64()
}
