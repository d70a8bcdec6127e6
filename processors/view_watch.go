package processors

import (
	"sync"

	"github.com/quiesce/quiesce/codecs"
)

// hub wakes who waits for a change. Watchers have room for one wake-up: changes in quick succession are one.
type hub struct {
	mu   sync.Mutex
	keys map[string]map[*watcher]struct{} // by batch; "" = every change
}

type watcher struct {
	ch        chan struct{}
	partition int32 // of its key
}

func newHub() *hub { return &hub{keys: map[string]map[*watcher]struct{}{}} }

// watch registers a watcher of an id; partition gives where the id lives.
func (h *hub) watch(id string, partition int32) (<-chan struct{}, func()) {
	w := &watcher{ch: make(chan struct{}, 1), partition: partition}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keys[id] == nil {
		h.keys[id] = map[*watcher]struct{}{}
	}
	h.keys[id][w] = struct{}{}
	return w.ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.keys[id], w)
		if len(h.keys[id]) == 0 {
			delete(h.keys, id)
		}
	}
}

// changed wakes the watchers of a key's id; the position row wakes all of its partition.
func (h *hub) changed(partition int32, key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.keys) == 0 {
		return
	}
	if codecs.IsReserved([]byte(key)) {
		for _, ws := range h.keys {
			for w := range ws {
				if w.partition == partition || w.partition < 0 {
					w.wake()
				}
			}
		}
		return
	}
	for w := range h.keys[string(codecs.BatchOf([]byte(key)))] {
		w.wake()
	}
	for w := range h.keys[""] {
		w.wake()
	}
}

// all wakes everybody: the view as a whole has changed.
func (h *hub) all() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, ws := range h.keys {
		for w := range ws {
			w.wake()
		}
	}
}

func (w *watcher) wake() {
	select {
	case w.ch <- struct{}{}:
	default:
	}
}
