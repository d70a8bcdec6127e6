package queue

import (
	"container/heap"
	"slices"
)

// backlog is what was fetched and may be handed out: by priority, then in the order of arrival; suspects apart. There is
// a heap for each partition, since a partition may be full while others are not.
type backlog struct {
	parts    map[int32]*taskHeap
	tasks    int
	suspects []*Delivery
	seq      uint64
}

type entry struct {
	d   *Delivery
	seq uint64
}

type taskHeap []entry

func (h taskHeap) Len() int           { return len(h) }
func (h taskHeap) Less(i, k int) bool { return before(h[i], h[k]) }

func before(a, b entry) bool {
	if p, q := a.d.Task.Priority, b.d.Task.Priority; p != q {
		return p > q
	}
	return a.seq < b.seq
}

func (h taskHeap) Swap(i, k int) { h[i], h[k] = h[k], h[i] }
func (h *taskHeap) Push(x any)   { *h = append(*h, x.(entry)) }
func (h *taskHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = entry{}
	*h = old[:len(old)-1]
	return e
}

func (b *backlog) len() int { return b.tasks + len(b.suspects) }

func (b *backlog) push(d *Delivery, suspect bool) {
	if suspect {
		b.suspects = append(b.suspects, d)
		return
	}
	if b.parts == nil {
		b.parts = map[int32]*taskHeap{}
	}
	h := b.parts[d.part]
	if h == nil {
		h = &taskHeap{}
		b.parts[d.part] = h
	}
	b.seq++
	b.tasks++
	heap.Push(h, entry{d, b.seq})
}

// suspect returns the next suspect without taking it; nil = none.
func (b *backlog) suspect() *Delivery {
	if len(b.suspects) == 0 {
		return nil
	}
	return b.suspects[0]
}

// popSuspect takes the next suspect, of which there is one.
func (b *backlog) popSuspect() *Delivery {
	d := b.suspects[0]
	b.suspects = b.suspects[1:]
	return d
}

// pop takes the next other task of the partitions that are not held (nil = none is); nil = there is none.
func (b *backlog) pop(held func(part int32) bool) *Delivery {
	var best *taskHeap
	for part, h := range b.parts {
		if len(*h) > 0 && (best == nil || before((*h)[0], (*best)[0])) && (held == nil || !held(part)) {
			best = h
		}
	}
	if best == nil {
		return nil
	}
	b.tasks--
	return heap.Pop(best).(entry).d
}

// drop removes everything of a partition.
func (b *backlog) drop(part int32) {
	b.suspects = slices.DeleteFunc(b.suspects, func(d *Delivery) bool { return d.part == part })
	if h := b.parts[part]; h != nil {
		b.tasks -= len(*h)
		delete(b.parts, part)
	}
}
