package processors

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"

	"github.com/quiesce/quiesce/codecs"
)

// folded is what the oracle has after the inputs below an offset.
type folded struct {
	rows    map[string]string // by table key, parts too
	applied map[string]int64  // of header rows
	outputs int
}

// keyOn is a key of a partition.
func (sc *scenario) keyOn(id int32) string {
	key := "k"
	for i := 0; codecs.Partition([]byte(key), sc.count()) != id; i++ {
		key = fmt.Sprint("k", i)
	}
	return key
}

func (sc *scenario) count() int32 { return int32(max(sc.partitions, 1)) }

// expectations are the folds of all prefixes of a partition's input; [n] is the one after n inputs.
func (sc *scenario) expectations(id int32) []folded {
	w := newWorld(1)
	sc.inputs(w, sc.keyOn(id))
	m := &tally{}
	o := &oracle{rows: map[string]*tallyRow{}, parts: map[string]*tallyPart{}, applied: map[string]int64{}, quarantined: map[string]bool{}, seen: map[codecs.Src]bool{}}
	all := []folded{o.snapshot()}
	for _, rec := range w.log(wInput).recs {
		o.take(m, rec)
		all = append(all, o.snapshot())
	}
	return all
}

func (o *oracle) snapshot() folded {
	f := folded{rows: map[string]string{}, applied: maps.Clone(o.applied), outputs: len(o.outputs)}
	for k, r := range o.rows {
		f.rows[k] = r.String()
	}
	for k, p := range o.parts {
		f.rows[k] = p.String()
	}
	return f
}

// watch checks every record when it is written.
type watch struct {
	s       *stretch
	digests map[*codecs.Record]uint64
	judge   Judge
	applied map[string]int64 // of the valid record of each key
	deleted map[string]bool
	said    map[string]uint64 // digest of what was said under each src
	ended   map[string]string // src by terminal id
	seen    marks             // as a receiver of the events keeps them
	outputs int
	all     []string // the oracle's outputs
}

func (c *watch) init(s *stretch) {
	*c = watch{s: s, digests: map[*codecs.Record]uint64{}, applied: map[string]int64{}, deleted: map[string]bool{}, said: map[string]uint64{}, ended: map[string]string{}, seen: marks{}}
}

func (c *watch) wrote(rec *codecs.Record) {
	var h maphash.Hash
	h.SetSeed(seed)
	fmt.Fprintf(&h, "%s %d %q %v %q %q", rec.Topic, rec.Offset, rec.Key, rec.Value == nil, rec.Value, rec.Headers)
	c.digests[rec] = h.Sum64()
	switch rec.Topic {
	case wTable:
		c.s.fail(c.row(rec))
	case wEvents:
		c.s.fail(c.event(rec))
	}
}

// row: a valid record is the fold of the input up to what it has applied, and never goes back.
func (c *watch) row(rec *codecs.Record) error {
	stale, err := c.judge.Stale(rec)
	if err != nil || stale {
		return err
	}
	key := string(rec.Key)
	switch {
	case key == codecs.PositionKey && rec.Value != nil:
		p, err := parsePosition(rec.Value)
		if err != nil {
			return err
		}
		return c.durable("position", p.Offset)
	case codecs.IsReserved(rec.Key):
		return nil
	case rec.Value == nil:
		delete(c.applied, key)
		c.deleted[key] = true
		return nil
	}
	env, b, err := ParseEnvelope(rec.Value)
	if err != nil {
		return err
	}
	if was, ok := c.applied[key]; ok && env.Applied < was {
		return fmt.Errorf("REGRESSED: row %q has applied %d, had %d", key, env.Applied, was)
	}
	var row Row
	if env.Part {
		row, err = (&tally{}).LoadPart(key, b)
	} else {
		row, err = (&tally{}).LoadRow(key, b)
	}
	if err != nil {
		return err
	}
	if want := c.s.want[c.s.id][env.Applied+1].rows[key]; want != row.String() {
		return fmt.Errorf("WRONG: row %q at applied %d is %s, the fold of the input is %s", key, env.Applied, row, want)
	}
	c.applied[key] = env.Applied
	delete(c.deleted, key)
	return nil
}

// event: the same src never says two things, a terminal id has one src, and a receiver that drops repeats by marks sees
// the outputs of the oracle in their order.
func (c *watch) event(rec *codecs.Record) error {
	var ev codecs.Event
	if err := codecs.Decode(rec, &ev); err != nil {
		return err
	}
	src, digest := ev.Src.String(), maphash.Bytes(seed, rec.Value)
	if was, ok := c.said[src]; ok && was != digest {
		return fmt.Errorf("CONTRADICTION: %s says two things", src)
	}
	c.said[src] = digest
	if ev.Type == codecs.TypeBatchCompleted {
		if was, ok := c.ended[ev.ID]; ok && was != src {
			return fmt.Errorf("TWICE: %s from %s and %s", ev.ID, was, src)
		}
		c.ended[ev.ID] = src
	}
	if c.seen.repeat(&ev.Src) {
		return nil
	}
	if c.all == nil {
		c.all = c.s.w.oracle().outputs
	}
	got := describe(ev.Src.Offset, int(ev.Src.Index), ev.Type, ev.Key, ev.Data)
	if c.outputs >= len(c.all) || c.all[c.outputs] != got {
		return fmt.Errorf("WRONG: output %d is %s, want one of %v", c.outputs, got, c.all)
	}
	c.outputs++
	return nil
}

// durable: below an offset that is committed or in a position row, rows and outputs are in their topics.
func (c *watch) durable(what string, next int64) error {
	if int(next) >= len(c.s.want[c.s.id]) {
		return fmt.Errorf("%s %d is beyond the input", what, next)
	}
	want := c.s.want[c.s.id][next]
	var err error
	if c.outputs < want.outputs {
		err = fmt.Errorf("EARLY %s %d: %d of %d outputs are there", what, next, c.outputs, want.outputs)
	}
	for key, at := range want.applied {
		if have, ok := c.applied[key]; !c.deleted[key] && (!ok || have < at) {
			err = errors.Join(err, fmt.Errorf("EARLY %s %d: row %s has applied %d, want %d", what, next, key, have, at))
		}
	}
	return err
}

// check asks, in a new state, what would be if everybody died now: an owner that starts on an empty disk, or on that of
// the last owner, brings everything to its right end.
//
// While the owner has nothing to do, followers of the status are right without that.
func (r *run) check() error {
	for _, s := range r.parts {
		if l := s.newest(); r.sc.status && l != nil && l.quiet() && l.part.next == s.w.end(wInput) && l.part.done.Offset == l.part.next {
			if err := s.w.sameStatus(s.w.oracle()); err != nil {
				return err
			}
		}
		disks := []*memory{newMemory()}
		if l := s.newest(); l != nil {
			disks = append(disks, l.disk)
		}
		for i, d := range disks {
			if err := s.recovers(d.copy()); err != nil {
				return fmt.Errorf("after a restart on %s: %w", []string{"an empty disk", "the last disk"}[i], err)
			}
		}
	}
	return nil
}

func (s *stretch) recovers(disk *memory) error {
	w := s.w.clone()
	if err := w.finish(s.id, s.sc.status, disk, s.machineOf("last"), s.off); err != nil {
		return err
	}
	w.compact(wTable)
	w.compact(wStatus)
	w.age()
	if err := w.finish(s.id, s.sc.status, newMemory(), s.machineOf("very last"), s.off); err != nil {
		return fmt.Errorf("after the cleaner: %w", err)
	}
	return nil
}

// finish runs an owner that does not die over everything that is left.
func (w *world) finish(id int32, status bool, disk *memory, m Machine, off rules) (err error) {
	f := newFaults()
	for range 20 {
		var p *part
		disk.p = w.live()
		e := w.env(disk.p, m, f, off)
		e.hasStatus = status
		if p, err = takeOver(context.Background(), e, id, disk); err != nil {
			break
		}
		if err = w.feed(p, 1<<30); err == nil {
			err = settle(p)
		}
		if err == nil {
			return w.verdict()
		}
		if !errors.Is(err, errStep) {
			break
		}
	}
	return fmt.Errorf("STUCK: %w", err)
}

// clone copies the logs.
func (w *world) clone() *world {
	c := newWorld(1)
	c.now, c.commit, c.partitions, c.metrics = w.now, w.commit, w.partitions, w.metrics
	for name, l := range w.topics {
		cp := *l
		cp.recs = append([]*codecs.Record(nil), l.recs...)
		c.topics[name] = &cp
	}
	return c
}
