package processors

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/quiesce/quiesce/codecs"
)

// timers nudge the rows whose deadline is near. A nudge is an input record like any other: the machine compares its own
// deadlines with the append time, so that early, late and repeated nudges are harmless. A row is nudged again, with
// backoff, until its deadline is gone. Guarded by part.mu.
type timers struct {
	byKey map[string]*timer
	heap  timerHeap
	rest  time.Time // none before it
	far   far
}

type timer struct {
	key      string
	deadline int64 // ms since the epoch
	next     time.Time
	tries    int
	index    int
}

const (
	firstNudge = time.Second
	lastNudge  = time.Minute

	// After a take-over all open rows may be due. They get a burst of nudges at a time, so that their answers are many
	// small cuts and events of others pass between them.
	nudgeBurst = 500
	nudgePause = 20 * time.Millisecond
)

// set takes the row's deadline after an event; 0 = none.
func (t *timers) set(key string, deadline int64) {
	x := t.byKey[key]
	switch {
	case x == nil && deadline == 0:
	case deadline == 0:
		heap.Remove(&t.heap, x.index)
		delete(t.byKey, key)
	case x == nil:
		if t.byKey == nil {
			t.byKey = map[string]*timer{}
		}
		x = &timer{key: key, deadline: deadline, next: time.UnixMilli(deadline)}
		t.byKey[key] = x
		heap.Push(&t.heap, x)
	case x.deadline != deadline:
		x.deadline, x.next, x.tries = deadline, time.UnixMilli(deadline), 0
		heap.Fix(&t.heap, x.index)
	}
}

// due returns up to a burst of keys to nudge now, and schedules their next nudge.
func (t *timers) due(now time.Time) (keys []string) {
	for len(t.heap) > 0 && !t.heap[0].next.After(now) && !t.rest.After(now) {
		x := t.heap[0]
		keys = append(keys, x.key)
		x.next = now.Add(min(firstNudge<<min(x.tries, 10), lastNudge))
		x.tries++
		heap.Fix(&t.heap, 0)
		if len(keys) == nudgeBurst {
			t.rest = now.Add(nudgePause)
		}
	}
	return keys
}

// untilNudge is how long until the next nudge.
func (p *part) untilNudge(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	wait := p.timers.far.until(now)
	if len(p.timers.heap) > 0 {
		wait = min(wait, max(p.timers.heap[0].next.Sub(now), p.timers.rest.Sub(now), 0))
	}
	return wait
}

// nudge writes the nudges that are due to the own input topic.
func (p *part) nudge(now time.Time) {
	p.mu.Lock()
	keys := p.timers.due(now)
	p.mu.Unlock()
	for _, key := range keys {
		m := p.machine.Nudge(key)
		id := m.ID
		if id == "" {
			id = fmt.Sprintf("%s/nudge/%s/%d", p.group, key, now.UnixMilli())
		}
		rec, err := codecs.Encode(m.Topic, m.Key, p.source, &codecs.Event{Type: m.Type, ID: id, Data: m.Data})
		if err != nil {
			p.log.Error("nudge does not encode", "partition", p.id, "key", key, "error", err)
			continue
		}
		p.m.nudges.Inc()
		p.out.Send(p.input, p.id, rec.Key, rec.Value, rec.Headers, func(_ int64, err error) {
			if err != nil { // the next try is scheduled already
				p.log.Warn("nudge not sent", "partition", p.id, "key", key, "error", err)
			}
		})
	}
}

// timerHeap is ordered by the next nudge.
type timerHeap []*timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].next.Before(h[j].next) }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}
func (h *timerHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return x
}
