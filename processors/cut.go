package processors

import (
	"fmt"
	"maps"
	"time"

	"github.com/quiesce/quiesce/codecs"
)

// cut is what one flush makes durable: all that the inputs up to last changed. It is open until the flusher closes it.
type cut struct {
	first, last int64
	inputs      int
	since       time.Time // of the first input
	dueSince    time.Time // of the first output that an observer waits for; zero = none
	dirty       []*entry  // in the order in which they were first touched
	outputs     []*output // in input order
	outBytes    int
	weight      int // of the dirty rows
	command     bool
	crowded     bool // the outbox of a row is full

	// Since it was closed.
	rows    []row // in the order in which they are written
	entries []*entry
	gone    []*entry
	size    int
	to      *position // position row that is in the cut
	after   position  // what the position row says when the cut is done
}

const (
	maxCutInputs   = 1 << 20
	maxCutOutBytes = 16 << 20
	maxCutWeight   = 32 << 20
)

func (c *cut) full() bool {
	return c.crowded || c.inputs >= maxCutInputs || c.outBytes >= maxCutOutBytes || c.weight >= maxCutWeight
}

func (c *cut) send(o *output) {
	c.outputs = append(c.outputs, o)
	c.outBytes += o.size()
}

// nextCut returns the closed cut when it is time, else how long to wait. last: the part is stopping and all is done.
func (p *part) nextCut(now time.Time) (c *cut, wait time.Duration, last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return nil, 0, false
	}
	at := p.cutAt(now)
	if at.IsZero() {
		return nil, p.timing.Idle, p.drain
	}
	if wait = at.Sub(now); wait > 0 && !p.drain {
		return nil, wait, false
	}
	c, err := p.closeCut()
	if err != nil {
		p.failLocked(err)
		return nil, 0, false
	}
	return c, 0, false
}

// cutAt is the pace: at once when an output is due, else by age, both stretched by the byte rate of the last cut within
// their bounds. Without inputs a cut writes the position, and deletes what the position allows.
func (p *part) cutAt(now time.Time) time.Time {
	c := p.open
	rested := p.lastCut.Add(min(time.Duration(float64(p.lastSize)/float64(p.timing.BytesPerSecond)*float64(time.Second)), p.timing.MaxCut))
	if p.off.unpaced {
		rested = p.lastCut
	}
	switch {
	case c.full():
		return now
	case !c.dueSince.IsZero():
		return earlier(later(rested, c.dueSince), c.dueSince.Add(p.timing.MaxDue))
	case c.inputs > 0:
		return later(rested, c.since.Add(p.timing.Cut))
	case p.done.Offset > p.written:
		if p.command {
			return p.doneAt.Add(p.timing.Cut)
		}
		return p.doneAt.Add(p.timing.Idle)
	case p.anyRipe():
		return now
	}
	return time.Time{}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// closeCut encodes the open cut and opens the next one. Called with mu held, so that no event changes the rows meanwhile.
func (p *part) closeCut() (*cut, error) {
	c := p.open
	if c.inputs == 0 {
		c.last = p.done.Offset - 1
	}
	c.after = position{Position: codecs.Position{Topic: p.topicID, Offset: c.last + 1}, epoch: p.done.epoch, marks: p.done.marks}
	if p.changed {
		c.after.marks = maps.Clone(p.marks)
		p.changed = false
	}
	to := p.done
	if p.off.positionOfRows {
		to = c.after
	}
	if to.Offset > p.written {
		c.to = &to
		r := row{codecs.PositionKey, to.encode(p.claim)}
		if p.off.deletePosition && c.inputs == 0 {
			r.value = nil
		}
		c.add(r)
	}
	if err := p.summarize(c); err != nil {
		return nil, err
	}
	order := []bool{false, true} // header rows first
	if p.off.partsFirst {
		order = []bool{true, false}
	}
	for _, parts := range order {
		for _, e := range c.dirty {
			if e.Part != parts {
				continue
			}
			if err := p.write(c, e); err != nil {
				return nil, err
			}
		}
	}
	p.deleteRipe(c)
	p.open = &cut{}
	p.lastCut, p.lastSize = time.Now(), c.size
	p.room.Broadcast()
	return c, nil
}

func (c *cut) add(r row) {
	c.rows = append(c.rows, r)
	c.size += len(r.key) + len(r.value)
}

// write encodes one dirty row into the cut.
func (p *part) write(c *cut, e *entry) error {
	if p.off.deleteAtOnce && !e.Part {
		if _, self := p.machine.Collect(e.row); self {
			e.inCut = nil
			c.add(row{key: e.key})
			p.absent(c, e)
			return nil
		}
	}
	e.acked(p.done.Offset)
	if len(e.Spans) > 0 {
		e.Spans = p.pruned(e.Spans)
	}
	b, err := e.row.AppendBinary(make([]byte, 0, e.size))
	if err == nil && len(b) > p.machine.MaxRowBytes() && !e.Quarantined() {
		err = fmt.Errorf("%d bytes, at most %d", len(b), p.machine.MaxRowBytes())
	}
	if err != nil {
		if e.Part {
			p.faults.suspect(p.id, string(codecs.BatchOf([]byte(e.key))))
		}
		p.faults.suspect(p.id, e.key)
		return fmt.Errorf("row %q: %w: %w", e.key, errStep, err)
	}
	h := codecs.RowHeader{Format: codecs.RowFormat, Claim: p.claim, Applied: e.Applied}
	v := codecs.AppendRow(make([]byte, 0, len(b)+64+e.outBytes), h, b, e.appendTail(nil))
	p.cache.resize(e, len(v))
	e.inCut = nil
	e.flying++
	c.entries = append(c.entries, e)
	c.add(row{e.key, v})
	return nil
}
