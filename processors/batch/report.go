package batch

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/quiesce/quiesce/codecs"
)

// Bounds of one event.
const (
	maxParkedRuns = 4    // runs that have not started
	maxReasons    = 1000 // outcome records that one event may write
)

// report folds the outcomes of a report. In the mode markers it only names failures.
func (s *step) report(d *codecs.BatchReport) {
	switch {
	case d.Run != s.p.Run && slices.Contains(s.p.PastRuns, d.Run):
		s.audit().Stale += size(d.Items)
		return
	case d.Run != s.p.Run:
		s.park(d)
		return
	case max(1, d.Round) < s.p.Round:
		s.late(d)
		return
	case !s.active():
		s.afterEnd(d)
		return
	}
	reasons := maxReasons
	for _, it := range d.Items {
		s.item(d, it, &reasons)
	}
}

// item folds one item.
func (s *step) item(d *codecs.BatchReport, it *codecs.ReportItem, reasons *int) {
	if int(it.Leg) >= len(s.legs) {
		s.audit().Unexpected += size([]*codecs.ReportItem{it})
		return
	}
	f := fold{row: s.Row, leg: &s.legs[it.Leg], outcome: it.Outcome, limit: uint64(s.p.MaxTotal)}
	if s.sealed() {
		f.limit = uint64(s.p.Total)
	}
	if len(s.legs) > 1 || it.Outcome != codecs.OK {
		f.fresh = roaring.New()
	}
	f.item(it)
	if f.over+f.known > 0 {
		s.audit().Unexpected += f.over
		s.audit().Duplicates += f.known
	}
	if f.taken == 0 {
		return
	}
	s.p.LastProgressAt = s.p.Now
	if len(s.legs) > 1 && it.Outcome != codecs.Outcome_unspecified {
		s.settle(f.fresh)
	}
	if it.Outcome == codecs.OK || it.Outcome == codecs.Outcome_unspecified {
		return
	}
	s.tellReasons(d, it, f.fresh, reasons)
	if codecs.IsFailure(it.Outcome) && !s.p.FirstFailure {
		s.p.FirstFailure = true
		s.emit(codecs.TypeBatchFirstFailure, it.Reason)
	}
}

// fold adds ranges of tasks to one leg.
type fold struct {
	row                *Row
	leg                *leg
	outcome            codecs.Outcome_Code
	limit              uint64
	fresh              *roaring.Bitmap // those that are new; nil = nobody asks
	taken, known, over uint64
}

// item adds the tasks of an item: dense sets as sets, sparse ones one by one.
func (f *fold) item(it *codecs.ReportItem) {
	tasks, chunks, err := codecs.ItemSize(it)
	if err == nil && len(it.Bitmap) > 0 && tasks >= uint64(chunks)*shortRange {
		set := setOf(it)
		if over := above(set, uint32(f.limit)); over > 0 {
			f.over += over
			set.RemoveRange(f.limit, 1<<32)
		}
		f.addSet(set)
		return
	}
	_ = codecs.ForEachRange(it, f.add) // checked when it was decoded
}

// shortRange is the length up to which tasks are added one by one.
const shortRange = 16

// add takes the tasks first to last, inclusive.
func (f *fold) add(first, last uint32) {
	if uint64(last) >= f.limit {
		if uint64(first) >= f.limit {
			f.over += uint64(last-first) + 1
			return
		}
		f.over += uint64(last) - f.limit + 1
		last = uint32(f.limit - 1)
	}
	if last-first >= shortRange {
		set := roaring.New()
		set.AddRange(uint64(first), uint64(last)+1)
		f.addSet(set)
		return
	}
	busy := !f.row.running.IsEmpty()
	for i := uint64(first); i <= uint64(last); i++ {
		f.one(uint32(i), busy)
	}
}

func (f *fold) one(i uint32, busy bool) {
	if f.outcome == codecs.Outcome_unspecified {
		if !f.leg.all.Contains(i) && f.row.running.CheckedAdd(i) {
			f.taken++
		}
		return
	}
	if !f.leg.all.CheckedAdd(i) {
		f.known++
		return
	}
	f.taken++
	f.leg.by.of(f.outcome).Add(i)
	if busy {
		f.row.running.Remove(i)
	}
	if f.fresh != nil {
		f.fresh.Add(i)
	}
}

func (f *fold) addSet(set *roaring.Bitmap) {
	n := set.GetCardinality()
	set.AndNot(f.leg.all)
	left := set.GetCardinality()
	f.taken += left
	if f.outcome == codecs.Outcome_unspecified {
		f.row.running.Or(set)
		return
	}
	f.known += n - left
	f.leg.all.Or(set)
	f.leg.by.of(f.outcome).Or(set)
	f.row.running.AndNot(set)
	if f.fresh != nil {
		f.fresh.Or(set)
	}
}

// setOf is the tasks that an item names; the set is the caller's.
func setOf(it *codecs.ReportItem) *roaring.Bitmap {
	set := roaring.New()
	if len(it.Bitmap) > 0 && set.UnmarshalBinary(it.Bitmap) == nil {
		return set
	}
	if it.Last == nil || *it.Last == it.First {
		set.Add(it.First)
		return set
	}
	set.AddRange(uint64(it.First), uint64(*it.Last)+1)
	return set
}

func size(items []*codecs.ReportItem) (n uint64) {
	for _, it := range items {
		tasks, _, err := codecs.ItemSize(it)
		if err == nil {
			n += tasks
		}
	}
	return n
}

// above counts the members from limit on.
func above(set *roaring.Bitmap, limit uint32) uint64 {
	if set.IsEmpty() || set.Maximum() < limit {
		return 0
	}
	if limit == 0 {
		return set.GetCardinality()
	}
	return set.GetCardinality() - set.Rank(limit-1)
}

// settle gives those of the tasks that now have an outcome on every leg their own: the worst of them.
func (r *Row) settle(candidates *roaring.Bitmap) {
	done := candidates.Clone()
	for i := range r.legs {
		done.And(r.legs[i].all)
	}
	for it := done.Iterator(); it.HasNext(); {
		task, worst := it.Next(), codecs.Outcome_unspecified
		for i := range r.legs {
			for o, set := range r.legs[i].by {
				if set.Contains(task) {
					worst = codecs.Worst(worst, codecs.Outcome_Code(o))
				}
			}
		}
		r.tasks.of(worst).Add(task)
	}
}

// everywhere is the tasks that have an outcome on the first leg: candidates after a load.
func (r *Row) everywhere() *roaring.Bitmap { return r.legs[0].all }

// tellReasons writes the outcome records of tasks that did not end ok.
func (s *step) tellReasons(d *codecs.BatchReport, it *codecs.ReportItem, tasks *roaring.Bitmap, left *int) {
	for i := tasks.Iterator(); i.HasNext() && *left > 0; *left-- {
		task := i.Next()
		s.out = append(s.out, codecs.Message{Topic: codecs.TopicOutcomes, Key: codecs.OutcomeKey(s.ev.Key, s.p.Run, task), Type: codecs.TypeTaskOutcome,
			Data: &codecs.TaskOutcome{Index: task, Outcome: it.Outcome, Reason: it.Reason, Attempt: it.Attempt, Round: s.p.Round,
				Reporter: d.Reporter, At: s.p.Now, Leg: it.Leg}})
	}
}

// dropAbove forgets tasks that the batch turned out not to have.
func (s *step) dropAbove(total uint32) {
	for i := range s.legs {
		l := &s.legs[i]
		s.audit().Unexpected += above(l.all, total)
		l.all.RemoveRange(uint64(total), 1<<32)
		l.by.each(func(set *roaring.Bitmap) { set.RemoveRange(uint64(total), 1<<32) })
	}
	s.tasks.each(func(set *roaring.Bitmap) { set.RemoveRange(uint64(total), 1<<32) })
	s.running.RemoveRange(uint64(total), 1<<32)
}

// late counts a report that can no longer change anything, and says so to the world.
func (s *step) late(d *codecs.BatchReport) {
	s.audit().Late += size(d.Items)
	s.emitItems(codecs.TypeBatchLate, d.Items)
}

// afterEnd tells repeats of what is known from reports that are late.
func (s *step) afterEnd(d *codecs.BatchReport) {
	var late []*codecs.ReportItem
	for _, it := range d.Items {
		named := setOf(it)
		known := uint64(0)
		if int(it.Leg) < len(s.legs) {
			known = named.AndCardinality(s.legs[it.Leg].all)
		}
		s.audit().Duplicates += known
		if n := named.GetCardinality() - known; n > 0 {
			s.audit().Late += n
			late = append(late, it)
		}
	}
	if len(late) > 0 {
		s.emitItems(codecs.TypeBatchLate, late)
	}
}

// park keeps the outcomes of a run that has not started.
func (s *step) park(d *codecs.BatchReport) {
	if s.p.Run == "" {
		s.p.State = codecs.State_orphan
		if s.p.StartedAt == 0 {
			s.p.StartedAt = s.p.Now
		}
	}
	i := slices.IndexFunc(s.p.Parked, func(k *codecs.ParkedReports) bool { return k.Run == d.Run })
	if i < 0 {
		if len(s.p.Parked) == maxParkedRuns {
			s.audit().Unexpected += size(d.Items)
			return
		}
		s.p.Parked = append(s.p.Parked, &codecs.ParkedReports{Run: d.Run})
		i = len(s.p.Parked) - 1
	}
	k := s.p.Parked[i]
	for _, it := range d.Items {
		if it.Outcome == codecs.Outcome_unspecified {
			continue
		}
		set := setOf(it)
		set.RemoveRange(uint64(defaultMaxTotal), 1<<32)
		parkSet(k, it, set)
	}
}

// parkSet adds tasks to a parked set; the first outcome of a task stands.
func parkSet(k *codecs.ParkedReports, it *codecs.ReportItem, set *roaring.Bitmap) {
	var mine *codecs.OutcomeSet
	for _, had := range k.Done {
		if had.Leg != it.Leg {
			continue
		}
		old := roaring.New()
		if unpack(had.Tasks, old) == nil {
			set.AndNot(old)
		}
		if had.Outcome == it.Outcome {
			mine = had
		}
	}
	if mine == nil {
		mine = &codecs.OutcomeSet{Leg: it.Leg, Outcome: it.Outcome}
		k.Done = append(k.Done, mine)
	}
	all := roaring.New()
	if unpack(mine.Tasks, all) == nil {
		all.Or(set)
	}
	if b, err := pack(all); err == nil {
		mine.Tasks = b
	}
}

// takeParked folds what was kept for the run that has just started.
func (s *step) takeParked() {
	i := slices.IndexFunc(s.p.Parked, func(k *codecs.ParkedReports) bool { return k.Run == s.p.Run })
	if i < 0 {
		return
	}
	k := s.p.Parked[i]
	s.p.Parked = slices.Delete(s.p.Parked, i, i+1)
	d := &codecs.BatchReport{Run: s.p.Run}
	for _, set := range k.Done {
		d.Items = append(d.Items, &codecs.ReportItem{Leg: set.Leg, Outcome: set.Outcome, Bitmap: set.Tasks})
	}
	s.report(d)
}

// unitEnd notes END of a unit.
func (s *step) unitEnd(d *codecs.BatchEnd) {
	if d.Run != s.p.Run || !s.active() || max(1, d.Round) < s.p.Round {
		s.audit().Late++
		return
	}
	for i, u := range s.p.Units {
		if u.Set.Stage != d.Unit.GetStage() || u.Set.Topic != d.Unit.GetTopic() || d.Unit.GetPartition() >= u.Set.Partitions {
			continue
		}
		if !s.units[i].CheckedAdd(d.Unit.GetPartition()) {
			s.audit().Duplicates++
			return
		}
		u.Consumed, u.Failed, u.LastAt = u.Consumed+d.Consumed, u.Failed+d.Failed, s.p.Now
		s.p.LastProgressAt = s.p.Now
		return
	}
	s.audit().Unexpected++
}
