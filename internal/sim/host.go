package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors"
)

// host runs a machine over its input topic, as the runtime does, but with nothing to lose: every record is a cut.
type host struct {
	machine processors.Machine
	log     *Log
	prefix  string
	topicID codecs.TopicID
	heads   map[string]codecs.Row
	parts   map[string]codecs.Row
	timers  map[string]*timer
	ev      codecs.Event

	mu sync.Mutex // rows and timers
}

// timer nudges a row at its deadline, and again as long as it has the same one.
type timer struct {
	deadline int64
	*time.Timer
}

func newHost(m processors.Machine, log *Log, prefix string) *host {
	h := &host{machine: m, log: log, prefix: prefix, heads: map[string]codecs.Row{}, parts: map[string]codecs.Row{}, timers: map[string]*timer{}}
	copy(h.topicID[:], m.Input())
	return h
}

func (h *host) run(ctx context.Context) error {
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, t := range h.timers {
			t.Stop()
		}
		clear(h.timers)
	}()
	return h.log.follow(ctx, codecs.Topic(h.prefix, h.machine.Input()), h.accept)
}

// accept takes one record. Here a record that cannot be read, or a row beyond its bound, is an error: nothing in a
// simulation sends one.
func (h *host) accept(rec *codecs.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.machine.Decode(rec, &h.ev); err != nil {
		return fmt.Errorf("%s: offset %d: %w", h.machine.Role(), rec.Offset, err)
	}
	key := h.ev.Key
	head := row(h.heads, key, h.machine.NewRow)
	var parts []codecs.Row
	for _, k := range h.machine.Parts(head, rec.Offset, &h.ev) {
		p := row(h.parts, k, h.machine.NewPart)
		h.machine.StepPart(p, rec.Offset, &h.ev)
		parts = append(parts, p)
	}
	msgs := h.machine.Step(head, parts, rec.Offset, &h.ev, nil)
	if c, ok := h.machine.(processors.Cutter); ok {
		msgs = c.Cut(head, msgs)
	}
	for i := range msgs {
		if err := h.send(rec.Offset, int32(i), &msgs[i]); err != nil {
			return err
		}
	}
	h.schedule(key, h.machine.Deadline(head))
	gone, self := h.machine.Collect(head)
	for _, k := range gone {
		delete(h.parts, k)
	}
	if self {
		delete(h.heads, key)
	}
	return nil
}

func row(rows map[string]codecs.Row, key string, fresh func(string) codecs.Row) codecs.Row {
	r := rows[key]
	if r == nil {
		r = fresh(key)
		rows[key] = r
	}
	return r
}

func (h *host) send(offset int64, index int32, m *codecs.Message) error {
	src := codecs.Src{Group: codecs.Group(h.prefix, h.machine.Role()), TopicID: h.topicID, Offset: offset, Index: index}
	id := m.ID
	if id == "" {
		id = src.String()
	}
	rec, err := codecs.Encode(codecs.Topic(h.prefix, m.Topic), m.Key, codecs.Source(h.prefix, src.Group),
		&codecs.Event{Type: m.Type, ID: id, Traceparent: m.Trace, Src: src, Data: m.Data})
	if err != nil {
		return err
	}
	h.log.Add(&rec)
	return nil
}

// again is how long after a nudge a row with the same deadline is nudged once more.
const again = time.Minute

func (h *host) schedule(key string, deadline int64) {
	t := h.timers[key]
	switch {
	case t != nil && t.deadline == deadline:
		return
	case t != nil:
		t.Stop()
		delete(h.timers, key)
	}
	if deadline == 0 {
		return
	}
	t = &timer{deadline: deadline}
	t.Timer = time.AfterFunc(time.Until(time.UnixMilli(deadline)), func() {
		m := h.machine.Nudge(key)
		rec, err := codecs.Encode(codecs.Topic(h.prefix, m.Topic), m.Key, codecs.Source(h.prefix, h.machine.Role()),
			&codecs.Event{Type: m.Type, ID: fmt.Sprintf("nudge/%s/%d", key, time.Now().UnixMilli()), Data: m.Data})
		if err != nil {
			panic(err) // a nudge has nothing that does not encode
		}
		h.log.Add(&rec)
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.timers[key] == t { // else it was replaced meanwhile
			t.Reset(again)
		}
	})
	h.timers[key] = t
}
