package processors

import (
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"slices"

	"github.com/quiesce/quiesce/codecs"
)

// life is one ownership. What it does is a coroutine that pauses before every step that others can see, or that is
// lost in a crash: a send, a read of what others write too, a write to the disk.
type life struct {
	s      *stretch
	n      int
	disk   *memory
	older  *memory // the disk as it was after the take-over
	faults *faults
	part   *part

	op      string // what it is doing; "" = idle
	sending bool   // the next step is a send
	private bool   // the next step is a write to the own disk, which nobody else sees
	refuse  int    // the next send fails: 1 = the record is not in the log, 2 = it is
	next    func() (struct{}, bool)
	stop    func()
	yield   func(struct{}) bool
	trace   uint64   // of what it saw since op began
	looked  [2]int64 // ends of table and status when it last looked for strangers
	ended   error
	dead    bool
}

var (
	_ producer = (*life)(nil)
	_ logs     = (*life)(nil)
	_ store    = diskOf{}
)

func (l *life) begin(op string, f func() error) {
	l.op = op
	l.trace = 0
	l.see(op, l.dump())
	l.next, l.stop = iter.Pull(func(yield func(struct{}) bool) {
		l.yield = yield
		err := f()
		l.op, l.yield = "", nil
		l.check(err)
	})
	l.step()
}

func (l *life) step() { l.next() }

// check ends a life that failed.
func (l *life) check(err error) {
	if err != nil && !l.dead {
		l.ended = err
		l.end()
	}
}

// end is the death of the owner: whatever it still does is for nobody.
func (l *life) end() {
	l.dead = true
	if stop := l.stop; stop != nil && l.op != "" {
		l.stop = nil
		stop()
	}
}

func (l *life) pause(sending bool) {
	if l.dead {
		return
	}
	l.sending = sending
	l.see("pause")
	if !l.yield(struct{}{}) {
		l.dead = true
	}
	l.sending = false
}

func (l *life) see(what ...any) {
	var h maphash.Hash
	h.SetSeed(seed)
	fmt.Fprintln(&h, l.trace, what)
	l.trace = h.Sum64()
}

func (l *life) takeOver() error {
	e := l.s.w.env(l.disk.p, l.s.machineOf(fmt.Sprint("v", l.n)), l.faults, l.s.off)
	e.out, e.logs = l, l
	e.hook = func(string, int32) {}
	e.hasStatus = l.s.sc.status
	p, err := takeOver(context.Background(), e, l.s.id, diskOf{l.disk, l})
	if err != nil {
		return err
	}
	p.mark = func(next int64) {
		if !l.dead {
			l.s.w.commit = max(l.s.w.commit, next)
			l.s.w.check(next)
		}
	}
	l.part = p
	l.older = l.disk.copy()
	return nil
}

// actions of this owner.
func (l *life) actions(acts []action) []action {
	sc := l.s.sc
	act := func(what string, arg int) { acts = append(acts, action{what: what, s: l.s, l: l, arg: arg}) }
	more := l.part != nil && l.part.next < l.s.w.end(wInput) && (sc.perCut == 0 || l.part.open.inputs < sc.perCut)
	switch {
	case l.op != "":
		act("step", 0)
		if more && sc.overlap {
			act("feed", 0)
		}
		if l.sending && l.s.refusals < sc.refusals {
			act("refuse", 0)
			act("refuse", 1)
		}
	case l.part != nil:
		if l.part.open.inputs > 0 || l.part.done.Offset > l.part.written || l.part.anyRipe() {
			act("flush", 0)
		}
		if more {
			act("feed", 0)
		}
		if l.strangers() {
			act("look", 0)
		}
	}
	return l.crash(acts)
}

func (l *life) crash(acts []action) []action {
	if l.s.crashes < l.s.sc.crashes {
		acts = append(acts, action{what: "crash", s: l.s, l: l})
	}
	return acts
}

// look lets so much time pass that the owner compares the ends of its logs.
func (l *life) look() error {
	err := l.part.lookForStrangers(context.Background())
	l.looked = l.ends()
	return err
}

func (l *life) ends() [2]int64 { return [2]int64{l.s.w.end(wTable), l.s.w.end(wStatus)} }

// strangers says whether there is something in the logs that this owner has not seen.
func (l *life) strangers() bool {
	ends := l.ends()
	return ends != l.looked && (ends[0] > l.part.table.next || l.s.sc.status && ends[1] > l.part.status.next)
}

// quiet: it runs, and whatever a stranger wrote long enough ago for the cleaner was repaired.
func (l *life) quiet() bool { return !l.dead && l.op == "" && l.part != nil && !l.strangers() }

// Send implements producer.
func (l *life) Send(topic string, _ int32, key, value []byte, headers []codecs.Header, done func(int64, error)) {
	l.pause(true)
	refuse := l.refuse
	l.refuse = 0
	switch {
	case l.dead:
		done(-1, errDead)
	case refuse == 1:
		l.see("refused")
		done(-1, errBroker)
	default:
		o := l.s.w.append(topic, key, value, headers)
		l.see(topic, o, refuse)
		if refuse == 2 {
			done(-1, errBroker)
			return
		}
		done(o, nil)
	}
}

// Start implements logs.
func (l *life) Start(_ context.Context, topic string, _ int32) (int64, error) {
	return l.s.w.log(topic).gone, nil
}

// End implements logs.
func (l *life) End(_ context.Context, topic string, _ int32) (int64, error) {
	if topic != wInput {
		l.pause(false)
	}
	if l.dead {
		return 0, errDead
	}
	end := l.s.w.end(topic)
	l.see(topic, end)
	return end, nil
}

// Read implements logs.
//
// What it reads does not change but for the cleaner.
func (l *life) Read(ctx context.Context, topic string, id int32, from, to int64, fn func(*codecs.Record) error) error {
	if l.s.sc.cleans+l.s.sc.ages > 0 {
		l.pause(false)
	}
	if l.dead {
		return errDead
	}
	return l.disk.p.Read(ctx, topic, id, from, to, func(r *codecs.Record) error {
		l.see(r.Offset, l.s.watch.digests[l.s.w.at(topic, r.Offset)])
		return fn(r)
	})
}

func (w *world) at(topic string, offset int64) *codecs.Record {
	l := w.log(topic)
	i, _ := slices.BinarySearchFunc(l.recs, offset, func(r *codecs.Record, o int64) int { return int(r.Offset - o) })
	return l.recs[i]
}

// diskOf pauses before writes.
type diskOf struct {
	*memory
	l *life
}

func (d diskOf) Write(rows []row, at storeMark) error {
	d.l.private = true
	d.l.pause(false)
	d.l.private = false
	if d.l.dead {
		return errDead
	}
	return d.memory.Write(rows, at)
}

// hash of an owner: a paused coroutine is what it was when it began, and what it saw since.
func (l *life) hash(h *maphash.Hash) {
	fmt.Fprintln(h, l.n, l.dead, l.op, l.ended, l.disk.hash())
	if l.older != nil && l.s.sc.older {
		fmt.Fprintln(h, l.older.hash())
	}
	if !l.dead {
		fmt.Fprintln(h, l.trace, l.sending, l.looked, l.dump())
	}
}

// dump is all of a part that can make a difference, as text.
func (l *life) dump() string {
	p := l.part
	if p == nil {
		return ""
	}
	b := fmt.Appendf(nil, "%d %d %d %d %v %v %d %v|", p.claim, p.table.next, p.status.next, p.next, p.changed, p.err, p.written, p.command)
	b = p.marks.append(b)
	b = p.done.marks.append(b)
	b = fmt.Appendf(b, "|%v %v %v|", p.done.Position, p.done.epoch, p.collect)
	for _, k := range slices.Sorted(maps.Keys(p.cache.rows)) {
		e := p.cache.rows[k]
		b = fmt.Appendf(b, "%q %d %v %v %v %d %d", k, e.Applied, e.Spans, e.stored, e.inCut == p.open, e.flying, e.size)
		if e.row != nil {
			b = append(b, e.row.String()...)
		}
		for _, o := range e.outbox {
			b = fmt.Appendf(b, " %d/%d %x", o.source, o.index, o.value)
		}
	}
	for e := p.cache.head.next; e != &p.cache.head; e = e.next { // the order decides what is evicted
		b = fmt.Appendf(b, " %q", e.key)
	}
	c := p.open
	b = fmt.Appendf(b, "|%d %d %v %v", c.inputs, c.last, !c.dueSince.IsZero(), c.command)
	for _, o := range c.outputs {
		b = fmt.Appendf(b, " %d/%d %x", o.source, o.index, o.value)
	}
	for _, e := range c.dirty {
		b = fmt.Appendf(b, " %q", e.key)
	}
	return string(b)
}
