package batch

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

// twin is the slow obvious form of the machine: one outcome per run, feeder, leg and task in a map, and every number
// counted again when it is asked for. It has no chunks, offsets or sums, and is what the machine must agree with.
type twin struct {
	now      int64
	run      *twinRun
	next     *twinRun
	past     []string
	audit    codecs.Audit
	ends     []string
	version  uint64
	answered map[string]bool
	orders   []string // of commands, oldest first
	refused  int      // dead letters
}

// at names a task of a feeder.
type at struct{ feeder, index uint32 }

// atLeg names what one leg may say of a task.
type atLeg struct {
	at
	leg uint32
}

type twinRun struct {
	id        string
	start     *codecs.BatchStart
	state     codecs.State_Code
	was       codecs.State_Code // of the round before, or of a collected run
	round     uint32
	open      bool
	paused    bool
	closedAs  codecs.Outcome_Code
	sealed    map[uint32]uint32 // N by feeder
	said      map[atLeg]codecs.Outcome_Code
	running   map[at]bool
	legs      uint32 // that parked reports speak of; 99 = they contradict each other
	parked    int
	policy    *codecs.Policy
	deadlines *codecs.Deadlines
	progress  int64
	endedAt   int64
	ends      map[string]uint64 // units, and what failed there
	causes    []string
	final     *codecs.Counts
}

func newTwin() *twin { return &twin{answered: map[string]bool{}} }

func (w *twin) newRun(id string) *twinRun {
	return &twinRun{id: id, state: codecs.State_orphan, round: 1, open: true, sealed: map[uint32]uint32{}, said: map[atLeg]codecs.Outcome_Code{},
		running: map[at]bool{}, ends: map[string]uint64{}, progress: w.now}
}

func (u *twinRun) legCount() uint32 {
	if u.start == nil {
		return u.legs
	}
	return uint32(max(len(u.start.Legs), 1))
}

func (u *twinRun) isSealed() bool {
	return u.start != nil && len(u.sealed) == int(max(u.start.Feeders, 1))
}

func (u *twinRun) total() (n uint32) {
	for _, k := range u.sealed {
		n += k
	}
	return n
}

func (u *twinRun) units() (n int) {
	for _, s := range u.start.Units {
		n += int(s.Partitions)
	}
	return n
}

// outcomes are the tasks with an outcome on every leg: the worst of them.
func (u *twinRun) outcomes() map[at]codecs.Outcome_Code {
	legs := map[at]uint32{}
	worst := map[at]codecs.Outcome_Code{}
	for k, o := range u.said {
		legs[k.at]++
		worst[k.at] = codecs.Worst(worst[k.at], o)
	}
	maps.DeleteFunc(worst, func(k at, _ codecs.Outcome_Code) bool { return legs[k] < u.legCount() })
	return worst
}

func (u *twinRun) counts() *codecs.Counts {
	if u.final != nil {
		return u.final
	}
	by := map[codecs.Outcome_Code]uint32{}
	done := u.outcomes()
	for _, o := range done {
		by[o]++
	}
	left := uint32(0)
	c := &codecs.Counts{}
	running := uint32(len(u.running))
	if u.isSealed() {
		c.Total = u.total()
		left = c.Total - min(uint32(len(done)), c.Total)
		switch attempted := u.start.Mode == modeMarkers && len(u.ends) == u.units(); {
		case attempted && u.closedAs == codecs.Outcome_unspecified:
			if len(done) == 0 {
				sum := uint64(0)
				for _, n := range u.ends {
					sum += n
				}
				by[codecs.Failed] = uint32(min(sum, uint64(left)))
				left -= by[codecs.Failed]
			}
			by[codecs.Unknown] += left
			running, left = 0, 0
		case u.closedAs != codecs.Outcome_unspecified:
			by[u.closedAs] += left
			running, left = 0, 0
		}
		running = min(running, left)
		c.Pending = left - running
	}
	c.Running = running
	c.Ok, c.Failed, c.Skipped, c.Cancelled = by[codecs.OK], by[codecs.Failed], by[codecs.Skipped], by[codecs.Cancelled]
	c.TimedOut, c.Lost, c.Unknown = by[codecs.TimedOut], by[codecs.Lost], by[codecs.Unknown]
	return c
}

// step applies one event.
func (w *twin) step(t int64, data proto.Message) {
	w.now = max(w.now, t)
	w.due()
	switch d := data.(type) {
	case *codecs.BatchStart:
		w.start(d)
	case *codecs.BatchSeal:
		w.seal(d)
	case *codecs.BatchReport:
		w.report(d)
	case *codecs.BatchEnd:
		w.unitEnd(d)
	case *codecs.BatchCommand:
		w.command(d)
	}
	for _, u := range []*twinRun{w.run, w.next} {
		if u == nil || u.start != nil || u.state == codecs.State_collected || w.now < u.progress+DefaultOrphanTTL {
			continue
		}
		if u == w.next {
			w.bury(u)
			w.next = nil
			continue
		}
		w.collect(u)
	}
}

func (w *twin) due() {
	u := w.run
	if u == nil || u.start == nil {
		return
	}
	if d := u.deadlines; u.open && (d.SealBy > 0 && w.now >= d.SealBy && !u.isSealed() || d.CompleteBy > 0 && w.now >= d.CompleteBy ||
		d.NoProgressFor > 0 && !u.paused && w.now >= u.progress+d.NoProgressFor) {
		if u.start.OnDeadline == "close" && u.isSealed() {
			w.end(codecs.State_completed_with_failures, codecs.TimedOut)
		} else {
			w.end(codecs.State_expired, codecs.Outcome_unspecified)
		}
	}
	keep := u.start.Retention
	if keep == 0 {
		keep = DefaultRetention
	}
	if !u.open && u.state != codecs.State_collected && w.now >= u.endedAt+keep {
		w.collect(u)
	}
}

func (w *twin) collect(u *twinRun) {
	u.final = u.counts()
	u.was, u.state, u.open, u.paused, u.causes = u.state, codecs.State_collected, false, false, nil
	w.version++
}

func (w *twin) bury(u *twinRun) {
	w.past = append(w.past, u.id)
	if len(w.past) > maxPast {
		w.past = w.past[1:]
	}
}

func (w *twin) end(state codecs.State_Code, closed codecs.Outcome_Code) {
	u := w.run
	attempted := u.start.Mode == modeMarkers && len(u.ends) == u.units()
	if !u.isSealed() || uint32(len(u.outcomes())) < u.total() && !attempted {
		u.closedAs = closed
	}
	u.state, u.open, u.paused, u.endedAt = state, false, false, w.now
	w.ends = append(w.ends, fmt.Sprintf("b/%s/%d/terminal", u.id, u.round))
	w.version++
}

func (w *twin) contradict(cause string) {
	if u := w.run; u.open {
		if !slices.Contains(u.causes, cause) {
			u.causes = append(u.causes, cause)
		}
		w.end(codecs.State_inconsistent, codecs.Outcome_unspecified)
	}
}

func (w *twin) reject() { w.audit.Unexpected++; w.refused++ }

// named is the run of a name.
func (w *twin) named(run string) *twinRun {
	for _, u := range []*twinRun{w.run, w.next} {
		if u != nil && u.id == run {
			return u
		}
	}
	return nil
}

// parks says that reports of an unknown run may wait for its START.
func (w *twin) parks(run string) bool {
	return w.named(run) == nil && (w.run == nil || w.next == nil) && !slices.Contains(w.past, run)
}

func (w *twin) start(d *codecs.BatchStart) {
	u := w.named(d.Run)
	switch {
	case u != nil && u.start != nil:
		w.audit.Duplicates++
		return
	case slices.Contains(w.past, d.Run):
		w.audit.Stale++
		return
	case u != nil && u.state == codecs.State_collected:
		w.reject()
		return
	}
	if old := w.run; old != nil && old != u && old.start != nil {
		end := old.state
		if end == codecs.State_collected {
			end = old.was
		}
		switch {
		case old.open && d.ReuseOpen == "supersede":
			w.end(codecs.State_cancelled, codecs.Cancelled)
		case old.open, d.Reuse == "reject", d.Reuse == "only-after-failure" && end == codecs.State_completed:
			w.reject()
			return
		}
	}
	if w.run != nil && w.run != u {
		w.bury(w.run)
	}
	if u == nil {
		u = w.newRun(d.Run)
	} else if u == w.next {
		w.next = nil
	}
	w.run = u
	spoke := u.legs
	u.start, u.state, u.progress, u.policy = proto.Clone(d).(*codecs.BatchStart), codecs.State_open, w.now, d.Policy
	if u.start.Mode == "" {
		u.start.Mode = modeLedger
	}
	u.deadlines = absolute(d.Deadlines, w.now)
	w.version++
	done := u.outcomes()
	if spoke > 0 {
		u.legs = spoke
	}
	for k := range done { // of parked reports, by feeders that do not exist
		if k.feeder >= max(d.Feeders, 1) {
			w.audit.Unexpected++
		}
	}
	maps.DeleteFunc(u.said, func(k atLeg, _ codecs.Outcome_Code) bool { return k.feeder >= max(d.Feeders, 1) })
	maps.DeleteFunc(u.running, func(k at, _ bool) bool { return k.feeder >= max(d.Feeders, 1) })
	switch {
	case spoke > 0 && spoke != u.legCount():
		w.contradict("legs")
	case u.parked > 0 && d.OpenChildren:
		w.contradict("parked children")
	default:
		w.evaluate()
	}
}

func (w *twin) seal(d *codecs.BatchSeal) {
	u := w.named(d.Run)
	switch {
	case u == nil && w.parks(d.Run), u != nil && u.start == nil:
		w.reject()
		return
	case u == nil:
		w.audit.Stale++
		return
	}
	n, sealed := u.sealed[d.Feeder]
	switch {
	case u.final != nil || d.Feeder >= max(u.start.Feeders, 1):
		w.reject()
		return
	case sealed && n == d.Total:
		w.audit.Duplicates++
		return
	case !u.open:
		w.audit.Late++
		return
	case sealed:
		w.contradict(fmt.Sprint("seal ", d.Feeder, d.Total, n))
		return
	case d.Total > u.maxTotal():
		w.reject()
		return
	}
	u.sealed[d.Feeder] = d.Total
	for k := range u.said {
		if k.feeder == d.Feeder && k.index >= d.Total {
			w.audit.Unexpected++
			delete(u.said, k)
		}
	}
	maps.DeleteFunc(u.running, func(k at, _ bool) bool { return k.feeder == d.Feeder && k.index >= d.Total })
	w.version++
	if u.isSealed() {
		u.state, u.progress = codecs.State_sealed, w.now
		w.evaluate()
	}
}

func (u *twinRun) maxTotal() uint32 {
	if u.start.MaxTotal > 0 {
		return u.start.MaxTotal
	}
	return DefaultMaxTotal
}

func each(d *codecs.BatchReport, fn func(it *codecs.ReportItem, i uint32)) {
	for _, it := range d.Items {
		_ = codecs.ForEachRange(it, func(first, last uint32) {
			for i := uint64(first); i <= uint64(last); i++ {
				fn(it, uint32(i))
			}
		})
	}
}

func (w *twin) report(d *codecs.BatchReport) {
	size := uint64(0)
	each(d, func(*codecs.ReportItem, uint32) { size++ })
	round, legs := max(d.Round, 1), max(d.Legs, 1)
	u := w.named(d.Run)
	if u == nil {
		if !w.parks(d.Run) || round != 1 {
			w.audit.Stale += size
			return
		}
		u = w.newRun(d.Run)
		if w.run == nil {
			w.run = u
		} else {
			w.next = u
		}
	}
	switch {
	case !u.open || round < u.round:
		w.audit.Late += size
		return
	case round > u.round:
		w.audit.Stale += size
		return
	case u.start != nil && legs != u.legCount():
		w.audit.Unexpected += size
		return
	case u.start.GetOpenChildren() && w.beyondAny(u, d):
		w.audit.Unexpected += size
		return
	}
	if u.start == nil {
		u.parked++
		if u.legs == 0 {
			u.legs = legs
		} else if u.legs != legs {
			u.legs = 99
		}
	}
	before := u.outcomes()
	started, said := false, len(u.said)
	each(d, func(it *codecs.ReportItem, i uint32) { started = w.task(u, d, it, i, legs) || started })
	fresh := len(u.outcomes()) > len(before)
	if len(u.said) > said || started {
		u.progress = w.now
	}
	if d.Children != nil {
		w.children(u, d, fresh)
	}
	if u == w.run && u.start != nil {
		w.evaluate()
	}
}

// task takes what an item says of one task; true = it was started.
func (w *twin) task(u *twinRun, d *codecs.BatchReport, it *codecs.ReportItem, i, legs uint32) bool {
	k := atLeg{at{d.Feeder, i}, it.Leg}
	switch {
	case !u.possible(k.at):
		w.audit.Unexpected++
		return false
	case it.Outcome == codecs.Outcome_unspecified:
		if _, said := u.said[atLeg{k.at, 0}]; said || u.running[k.at] {
			return false
		}
		u.running[k.at] = true
		return true
	case it.Leg >= legs:
		w.audit.Unexpected++
	case u.said[k] != codecs.Outcome_unspecified:
		w.audit.Duplicates++
	default:
		u.said[k] = it.Outcome
		if _, done := u.outcomes1(k.at, legs); done {
			delete(u.running, k.at)
		}
	}
	return false
}

// outcomes1 is outcomes of one task.
func (u *twinRun) outcomes1(k at, legs uint32) (o codecs.Outcome_Code, done bool) {
	for leg := range legs {
		x, ok := u.said[atLeg{k, leg}]
		if !ok {
			return o, false
		}
		o = codecs.Worst(o, x)
	}
	return o, true
}

// possible says that an index is a task, or may still turn out to be one.
func (u *twinRun) possible(k at) bool {
	if u.start == nil {
		return k.index < DefaultMaxTotal
	}
	if k.feeder >= max(u.start.Feeders, 1) {
		return false
	}
	if n, sealed := u.sealed[k.feeder]; sealed {
		return k.index < n
	}
	return k.index < u.maxTotal()
}

func (w *twin) beyondAny(u *twinRun, d *codecs.BatchReport) bool {
	beyond := !u.isSealed()
	each(d, func(_ *codecs.ReportItem, i uint32) { beyond = beyond || !u.possible(at{d.Feeder, i}) })
	return beyond
}

func (w *twin) children(u *twinRun, d *codecs.BatchReport, fresh bool) {
	switch {
	case u != w.run || !u.isSealed() || !u.start.OpenChildren:
		w.reject()
	case !fresh:
	case uint64(u.total())+uint64(d.Children.Count) > uint64(u.maxTotal()):
		w.contradict("children")
	default:
		u.sealed[0] += d.Children.Count
	}
}

func (w *twin) unitEnd(d *codecs.BatchEnd) {
	u := w.named(d.Run)
	switch {
	case u == nil && w.parks(d.Run), u != nil && u.start == nil:
		w.reject()
		return
	case u == nil:
		w.audit.Stale++
		return
	case u.start.Mode != modeMarkers:
		w.reject()
		return
	}
	declared := u.final == nil && slices.ContainsFunc(u.start.Units, func(s *codecs.UnitSet) bool {
		return s.Stage == d.Unit.Stage && s.Topic == d.Unit.Topic && d.Unit.Partition < s.Partitions
	})
	name := unitName(d.Unit)
	_, again := u.ends[name]
	switch {
	case !declared:
		w.audit.Unexpected++
	case !u.open || max(d.Round, 1) != u.round:
		w.audit.Late++
	case again:
		w.audit.Duplicates++
	default:
		u.ends[name] = d.Failed
		u.progress = w.now
		w.evaluate()
	}
}
