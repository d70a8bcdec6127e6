package codecs

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// Coalescer merges the outcomes of many tasks of one run and round into few report items. The first outcome of a task
// and leg stands, as it would in the log. The zero value is ready.
type Coalescer struct {
	groups map[group]*roaring.Bitmap
	done   map[uint32]*roaring.Bitmap // by leg: tasks with an outcome
	tasks  int
}

// group is what tasks must have in common to share an item.
type group struct {
	leg     uint32
	outcome Outcome_Code
	attempt uint32
	reason  string
}

// inline is the number of ranges up to which items of their own are used instead of a bitmap.
const inline = 4

// Add takes the tasks of an item. An error means that none was taken.
func (c *Coalescer) Add(it *ReportItem) error {
	g := group{it.Leg, it.Outcome, it.Attempt, it.Reason}
	done, set := c.setOf(g)
	if len(it.Bitmap) == 0 && (it.Last == nil || *it.Last == it.First) {
		if !done.Contains(it.First) && set.CheckedAdd(it.First) {
			c.tasks++
			if g.outcome != Outcome_unspecified {
				done.Add(it.First)
			}
		}
		return nil
	}
	add := roaring.New()
	if err := ForEachRange(it, func(first, last uint32) { add.AddRange(uint64(first), uint64(last)+1) }); err != nil {
		return fmt.Errorf("coalesce %s: %w", it.Outcome, err)
	}
	add.AndNot(done)
	if g.outcome != Outcome_unspecified {
		done.Or(add)
	}
	before := set.GetCardinality()
	set.Or(add)
	c.tasks += int(set.GetCardinality() - before)
	return nil
}

// setOf returns the tasks of a group, and those of its leg that have an outcome.
func (c *Coalescer) setOf(g group) (done, set *roaring.Bitmap) {
	if c.groups == nil {
		c.groups, c.done = map[group]*roaring.Bitmap{}, map[uint32]*roaring.Bitmap{}
	}
	if done = c.done[g.leg]; done == nil {
		done = roaring.New()
		c.done[g.leg] = done
	}
	if set = c.groups[g]; set == nil {
		set = roaring.New()
		c.groups[g] = set
	}
	return done, set
}

// Len is the number of tasks taken and not yet given.
func (c *Coalescer) Len() int { return c.tasks }

// Items returns what was added, starts before outcomes, and empties the coalescer. The same additions always give the
// same items.
func (c *Coalescer) Items() ([]*ReportItem, error) {
	keys := make([]group, 0, len(c.groups))
	for g, set := range c.groups {
		if !set.IsEmpty() {
			keys = append(keys, g)
		}
	}
	slices.SortFunc(keys, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.outcome, b.outcome), cmp.Compare(a.leg, b.leg), cmp.Compare(a.attempt, b.attempt),
			cmp.Compare(a.reason, b.reason))
	})
	var items []*ReportItem
	for _, g := range keys {
		sets, err := itemsOf(c.groups[g])
		if err != nil {
			return nil, fmt.Errorf("coalesce %s: %w", g.outcome, err)
		}
		for _, it := range sets {
			it.Leg, it.Outcome, it.Attempt, it.Reason = g.leg, g.outcome, g.attempt, g.reason
		}
		items = append(items, sets...)
	}
	*c = Coalescer{}
	return items, nil
}

// MergeItems returns the shortest items that say the same as the given ones in their order.
func MergeItems(items []*ReportItem) ([]*ReportItem, error) {
	var c Coalescer
	for i, it := range items {
		if err := c.Add(it); err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
	}
	return c.Items()
}

// itemsOf names the tasks of a set: ranges where these are few, else a bitmap.
func itemsOf(set *roaring.Bitmap) ([]*ReportItem, error) {
	set.RunOptimize()
	var items []*ReportItem
	ranges := 0
	for first, last := range set.Ranges() {
		if ranges++; ranges > inline {
			break
		}
		items = append(items, NewItem(first, uint32(last-1), 0))
	}
	if ranges <= inline {
		return items, nil
	}
	b, err := set.ToBytes()
	if err != nil {
		return nil, err
	}
	return []*ReportItem{{Bitmap: b}}, nil
}
