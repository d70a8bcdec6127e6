package queue

import (
	"container/heap"
	"slices"
)

// backlog is what was fetched and may be handed out: by priority, then in the order of arrival; suspects apart.
type backlog struct {
	tasks    taskHeap
	suspects []*Delivery
	seq      uint64
}

type entry struct {
	d   *Delivery
	seq uint64
}

type taskHeap []entry

func (h taskHeap) Len() int { return len(h) }
func (h taskHeap) Less(i, k int) bool {
	if a, b := h[i].d.Task.Priority, h[k].d.Task.Priority; a != b {
		return a > b
	}
	return h[i].seq < h[k].seq
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

func (b *backlog) len() int { return len(b.tasks) + len(b.suspects) }

func (b *backlog) push(d *Delivery, suspect bool) {
	if suspect {
		b.suspects = append(b.suspects, d)
		return
	}
	b.seq++
	heap.Push(&b.tasks, entry{d, b.seq})
}

// suspect returns the next suspect without taking it; nil = none.
func (b *backlog) suspect() *Delivery {
	if len(b.suspects) == 0 {
		return nil
	}
	return b.suspects[0]
}

// pop takes the next suspect or the next other task; nil = none.
func (b *backlog) pop(suspect bool) *Delivery {
	if suspect {
		d := b.suspects[0]
		b.suspects = b.suspects[1:]
		return d
	}
	if len(b.tasks) == 0 {
		return nil
	}
	return heap.Pop(&b.tasks).(entry).d
}

// drop removes everything of a partition.
func (b *backlog) drop(part int32) {
	b.suspects = slices.DeleteFunc(b.suspects, func(d *Delivery) bool { return d.part == part })
	b.tasks = slices.DeleteFunc(b.tasks, func(e entry) bool { return e.d.part == part })
	heap.Init(&b.tasks)
}
