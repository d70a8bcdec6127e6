package processors

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"strings"
	"time"

	"github.com/quiesce/quiesce/codecs"
)

// maxStepBytes bounds the outputs of one event, and maxOutboxBytes those that wait in one row: a row with its outbox has
// to fit into a record of the table.
const (
	maxStepBytes   = 2 << 20
	maxOutboxBytes = 1 << 20
)

// accept applies one input record to the cache and the open cut. Called with mu held.
func (p *part) accept(rec *codecs.Record) error {
	if p.misplaced(rec) {
		return nil
	}
	ev := &p.ev
	if reason := p.decodeEvent(rec, ev); reason != "" {
		if p.off.poisonStops {
			return fmt.Errorf("%w: offset %d: %s", errStep, rec.Offset, reason)
		}
		p.deadLetter(rec, reason)
		return nil
	}
	if ev.Src.Group != "" && !Detour(rec) && !p.off.noDedupe {
		if p.marks.repeat(&ev.Src) {
			p.m.repeats.Inc()
			return nil
		}
		p.changed = true
	}
	if strings.HasSuffix(ev.Type, ".command") {
		p.open.command = true
	}
	head, err := p.load(ev.Key, false)
	if err != nil {
		return err
	}
	if head.Applied >= rec.Offset {
		return p.replay(rec, ev, head)
	}
	return p.apply(rec, ev, head)
}

// Detour says whether a record came on a way of its own, late and out of order: the marks of its source do not apply.
func Detour(rec *codecs.Record) bool {
	_, moved := rec.Header(codecs.HeaderMoved)
	_, repaired := rec.Header(codecs.HeaderRepaired)
	return moved || repaired
}

// decodeEvent returns why the record cannot be read, "" when it can. A codec that panics is a reason too.
func (p *part) decodeEvent(rec *codecs.Record, ev *codecs.Event) (reason string) {
	if len(rec.Key) == 0 {
		return codecs.ErrNoKey.Error()
	}
	if !p.off.poisonStops {
		defer func() {
			if r := recover(); r != nil {
				reason = clip(fmt.Sprintf("decoder panicked: %v", r))
			}
		}()
	}
	if err := p.machine.Decode(rec, ev); err != nil {
		return clip(err.Error())
	}
	return ""
}

// replay handles an event that its row already has: parts that have not seen it take it, and exactly the outbox entries
// of this offset are sent again.
func (p *part) replay(rec *codecs.Record, ev *codecs.Event, head *entry) error {
	p.m.replays.Inc()
	span, aside := head.setAside(rec.Offset)
	if aside {
		p.park(rec, span.Reason)
	} else if head.row != nil {
		if _, err := p.stepParts(rec, ev, head); err != nil {
			return err
		}
	}
	for _, o := range head.outbox {
		if o.source == rec.Offset || p.off.resendAll && o.source >= p.done.Offset {
			p.open.send(o)
		}
	}
	return nil
}

// apply lets the machine step.
func (p *part) apply(rec *codecs.Record, ev *codecs.Event, head *entry) error {
	if reason, bad := p.faulty[rec.Offset]; bad && !head.Quarantined() && !p.off.noQuarantine {
		head.Spans = append(p.pruned(head.Spans), Span{From: rec.Offset, Reason: clip(reason)})
		p.m.quarantined.Inc()
		p.log.Error("row quarantined", "partition", p.id, "offset", rec.Offset, "key", head.key, "reason", reason)
		return p.setAside(rec, head)
	}
	if head.Quarantined() {
		if !p.machine.Repairs(ev) {
			return p.setAside(rec, head)
		}
		head.Spans[len(head.Spans)-1].To = rec.Offset
		p.log.Info("row repaired", "partition", p.id, "offset", rec.Offset, "key", head.key)
		defer p.repeatStatus(rec.Offset, head)
	}
	if head.row == nil {
		head.row = p.machine.NewRow(head.key)
	}
	parts, err := p.stepParts(rec, ev, head)
	if err != nil {
		return err
	}
	if p.msgs, err = p.step(rec.Offset, ev, head.row, parts); err != nil {
		return p.suspectFault(rec.Offset, head.key, err)
	}
	head.Applied = rec.Offset
	p.touch(head)
	if err := p.keep(rec.Offset, head); err != nil {
		return p.suspectFault(rec.Offset, head.key, err)
	}
	p.timers.set(head.key, p.machine.Deadline(head.row))
	return p.checkWatched(rec.Offset, head, parts)
}

// setAside sends the record of a quarantined row to the dead letter; the row only counts it.
func (p *part) setAside(rec *codecs.Record, head *entry) error {
	head.Applied = rec.Offset
	if head.row == nil {
		head.row = p.machine.NewRow(head.key)
	}
	span := head.Spans[len(head.Spans)-1]
	p.park(rec, span.Reason)
	if rec.Offset == span.From {
		p.repeatStatus(rec.Offset, head)
	}
	p.touch(head)
	return nil
}

// repeatStatus tells the followers of the status about a change of the quarantine flag.
func (p *part) repeatStatus(offset int64, head *entry) {
	if o := p.statusOf(head); o != nil && p.hasStatus {
		o.source, o.index = offset, math.MaxInt32
		head.outbox = append(head.outbox, o)
		p.open.send(o)
		p.open.hurry()
	}
}

func (p *part) stepParts(rec *codecs.Record, ev *codecs.Event, head *entry) (parts []codecs.Row, err error) {
	fault := func(err error) error { return p.suspectFault(rec.Offset, head.key, err) }
	keys, err := guard(func() []string { return p.machine.Parts(head.row, rec.Offset, ev) })
	if err != nil {
		return nil, fault(err)
	}
	for _, key := range keys {
		e, err := p.load(key, true)
		if err != nil {
			return nil, err
		}
		if e.row == nil {
			e.row = p.machine.NewPart(key)
		}
		if e.Applied < rec.Offset {
			if _, err := guard(func() struct{} { p.machine.StepPart(e.row, rec.Offset, ev); return struct{}{} }); err != nil {
				return nil, fault(err)
			}
			e.Applied = rec.Offset
			p.touch(e)
		}
		parts = append(parts, e.row)
	}
	return parts, nil
}

func (p *part) step(offset int64, ev *codecs.Event, row codecs.Row, parts []codecs.Row) ([]codecs.Message, error) {
	return guard(func() []codecs.Message { return p.machine.Step(row, parts, offset, ev, p.msgs[:0]) })
}

// keep puts the messages of a step into the outbox and the open cut.
func (p *part) keep(offset int64, head *entry) error {
	size := 0
	for i := range p.msgs {
		m := &p.msgs[i]
		o, err := p.encode(p.id, offset, int32(i), m)
		if err != nil {
			return fmt.Errorf("%w: %w", errStep, err)
		}
		head.outbox = append(head.outbox, o)
		p.open.send(o)
		size += o.size()
		if m.Due && !p.off.lateDue {
			p.open.hurry()
		}
	}
	head.outBytes += size
	if size > maxStepBytes {
		return fmt.Errorf("%w: outputs of one event take %d bytes, at most %d", errStep, size, maxStepBytes)
	}
	if head.outBytes > maxOutboxBytes {
		p.open.hurry()
		p.open.crowded = true
	}
	return nil
}

// suspectFault turns an error of the machine into the end of this ownership: the cache may be half changed. The next
// owner sets the row aside at this offset.
func (p *part) suspectFault(offset int64, key string, err error) error {
	if !p.off.noQuarantine {
		p.faults.add(p.id, offset, err.Error())
	}
	stack := ""
	if x := (*panicked)(nil); errors.As(err, &x) {
		stack = string(x.stack)
	}
	p.log.Error("machine failed", "partition", p.id, "offset", offset, "key", key, "error", err, "stack", stack)
	return fmt.Errorf("key %q, offset %d: %w", key, offset, err)
}

// checkWatched finds the event that makes a row too large, once a cut has found that it is.
func (p *part) checkWatched(offset int64, head *entry, parts []codecs.Row) error {
	if _, ok := p.watched[head.key]; !ok {
		return nil
	}
	for _, r := range append(parts, head.row) {
		b, err := r.AppendBinary(nil)
		if err == nil && len(b) > p.machine.MaxRowBytes() {
			err = fmt.Errorf("%d bytes, at most %d", len(b), p.machine.MaxRowBytes())
		}
		if err != nil {
			return p.suspectFault(offset, head.key, fmt.Errorf("%w: row: %w", errStep, err))
		}
	}
	return nil
}

// pruned drops spans that no replay can reach any more.
func (p *part) pruned(spans []Span) []Span {
	var kept []Span
	for _, s := range spans {
		if s.To == 0 || s.To > p.written {
			kept = append(kept, s)
		}
	}
	return kept
}

// touch makes a row part of the open cut.
func (p *part) touch(e *entry) {
	if e.inCut == nil {
		e.inCut = p.open
		p.open.dirty = append(p.open.dirty, e)
		p.open.weight += e.weight
	}
	if p.cache.rows[e.key] != e { // it was evicted while it was loaded for this event
		p.cache.add(e)
	}
}

// guard turns a panic of the machine into an error.
func guard[T any](f func() T) (v T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &panicked{r, debug.Stack()}
		}
	}()
	return f(), nil
}

// panicked is a panic of the machine.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("%v: panic: %v", errStep, p.value) }
func (p *panicked) Unwrap() error { return errStep }

// clip bounds a text that ends up in headers and rows.
func clip(s string) string {
	const most = 256
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "?")
}

func (c *cut) hurry() {
	if c.dueSince.IsZero() {
		c.dueSince = time.Now()
	}
}
