package stage

import (
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/quiesce/quiesce/codecs"
)

// reports collects the outcomes of a unit between two cuts. Successes cost a number each, failures an item with their
// reason.
type reports struct {
	byRun map[runKey]*outcomes
	order []runKey
	last  *outcomes
	key   runKey
	n     int
}

// runKey is what the items of one report have in common.
type runKey struct {
	batch, run    string
	round, feeder uint32
	legs          uint32 // of the topology; 0 where tasks have no legs
}

type outcomes struct {
	legs  []legOutcomes
	other []*codecs.ReportItem
}

// legOutcomes are the indexes of one leg with one outcome and no reason.
type legOutcomes struct {
	leg     uint32
	outcome codecs.Outcome_Code
	indexes []uint32
}

// add takes the outcomes of a record in a topology of so many legs, and reports whether there are enough for a report now.
func (r *reports) add(tag *codecs.Tag, items []item, legs uint32, enough int) bool {
	if len(items) == 0 {
		return false
	}
	o := r.of(runKey{tag.Batch, tag.Run, tag.Round, tag.Feeder, legs})
	for i := range items {
		o.add(&items[i])
	}
	r.n += len(items)
	return r.n >= enough
}

func (r *reports) of(k runKey) *outcomes {
	if r.last != nil && r.key == k {
		return r.last
	}
	o := r.byRun[k]
	if o == nil {
		if r.byRun == nil {
			r.byRun = map[runKey]*outcomes{}
		}
		o = &outcomes{}
		r.byRun[k] = o
		r.order = append(r.order, k)
	}
	r.last, r.key = o, k
	return o
}

func (o *outcomes) add(it *item) {
	if it.reason != "" {
		p := codecs.NewItem(it.index, it.index, it.outcome)
		p.Leg, p.Reason, p.Attempt = it.leg, it.reason, it.attempt
		o.other = append(o.other, p)
		return
	}
	for i := range o.legs {
		if l := &o.legs[i]; l.leg == it.leg && l.outcome == it.outcome {
			l.indexes = append(l.indexes, it.index)
			return
		}
	}
	o.legs = append(o.legs, legOutcomes{it.leg, it.outcome, []uint32{it.index}})
}

// maxReport is the size in bytes at which a report is split: well below what a broker takes by default.
const maxReport = 256 << 10

// events makes the report events of everything that was collected. id is what tells this cut from all others.
func (r *reports) events(id, reporter string) ([]reportEvent, error) {
	var events []reportEvent
	for _, k := range r.order {
		items := r.byRun[k].other
		for _, l := range r.byRun[k].legs {
			sets, err := l.items()
			if err != nil {
				return nil, fmt.Errorf("report of batch %s: %w", k.batch, err)
			}
			items = append(items, sets...)
		}
		for part := 0; len(items) > 0; part++ {
			n := fit(items)
			data := &codecs.BatchReport{Run: k.run, Round: k.round, Feeder: k.feeder, Legs: k.legs, Reporter: reporter, Items: items[:n:n]}
			events = append(events, reportEvent{k.batch, codecs.Event{Type: codecs.TypeBatchReport,
				ID: fmt.Sprintf("%s/%s/%d/%d/%d", id, k.run, k.round, k.feeder, part), Data: data}})
			items = items[n:]
		}
	}
	return events, nil
}

// reportEvent is an event of the control topic and its key.
type reportEvent struct {
	batch string
	event codecs.Event
}

// fit returns how many items go into one report: at least one.
func fit(items []*codecs.ReportItem) int {
	size := 0
	for i, it := range items {
		if size += len(it.Reason) + len(it.Bitmap) + 32; size > maxReport && i > 0 {
			return i
		}
	}
	return len(items)
}

// inline is the number of ranges up to which items of their own are shorter than a bitmap.
const inline = 4

// items names the indexes: ranges where these are few, else one bitmap.
func (l *legOutcomes) items() ([]*codecs.ReportItem, error) {
	slices.Sort(l.indexes)
	var items []*codecs.ReportItem
	for i := 0; i < len(l.indexes); {
		first, last := l.indexes[i], l.indexes[i]
		for i++; i < len(l.indexes) && l.indexes[i] <= last+1; i++ {
			last = l.indexes[i]
		}
		if len(items) == inline {
			return l.bitmap()
		}
		it := codecs.NewItem(first, last, l.outcome)
		it.Leg = l.leg
		items = append(items, it)
	}
	return items, nil
}

func (l *legOutcomes) bitmap() ([]*codecs.ReportItem, error) {
	set := roaring.New()
	set.AddMany(l.indexes)
	set.RunOptimize()
	b, err := set.ToBytes()
	if err != nil {
		return nil, err
	}
	return []*codecs.ReportItem{{Bitmap: b, Leg: l.leg, Outcome: l.outcome}}, nil
}
