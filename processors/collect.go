package processors

import "github.com/quiesce/quiesce/codecs"

// candidate is a row that said, in a finished cut, what may be deleted: a terminal marker. The null records follow when
// the durable position has passed the marker's offset, so that no replay can meet the row again.
type candidate struct {
	key     string
	applied int64
	parts   []string
	self    bool
}

// consider makes a candidate of a header row. Called with mu held.
func (p *part) consider(e *entry) {
	if e.Part || e.row == nil {
		return
	}
	parts, self := p.machine.Collect(e.row)
	if len(parts) > 0 || self {
		p.collect = append(p.collect, candidate{e.key, e.Applied, parts, self})
	}
}

// ripe are the candidates that the durable position has passed.
func (p *part) ripe() []candidate {
	if p.off.nullBeforePosition || p.off.deleteAtOnce {
		return p.collect
	}
	var ripe []candidate
	for _, c := range p.collect {
		if c.applied < p.written {
			ripe = append(ripe, c)
		}
	}
	return ripe
}

// deleteRipe adds the null records of ripe candidates to a cut: parts first, so that no part outlives its header. A row
// that has changed since is left alone: it is considered again when its cut is done. Called with mu held.
func (p *part) deleteRipe(c *cut) {
	ripe := p.ripe()
	if len(ripe) == 0 {
		return
	}
	kept := p.collect[:0]
	for _, x := range p.collect {
		if x.applied >= p.written && !p.off.nullBeforePosition && !p.off.deleteAtOnce {
			kept = append(kept, x)
		}
	}
	ripe = append([]candidate(nil), ripe...)
	p.collect = kept
	var heads []row
	for _, x := range ripe {
		head, err := p.load(x.key, false)
		if err != nil || head.Applied != x.applied || !head.clean() {
			continue
		}
		for _, key := range x.parts {
			if e, err := p.load(key, true); err == nil && e.clean() && e.stored {
				c.add(row{key: key})
				p.absent(c, e)
			}
		}
		if x.self {
			heads = append(heads, row{key: x.key})
			p.absent(c, head)
			p.timers.set(x.key, 0)
		}
	}
	for _, r := range heads {
		c.add(r)
	}
}

// absent empties an entry whose null record is in the cut. It stays in the cache until the store has forgotten the row.
func (p *part) absent(c *cut, e *entry) {
	e.row, e.outbox, e.outBytes, e.Spans, e.Applied = nil, nil, 0, nil, -1
	e.flying++
	c.gone = append(c.gone, e)
}

// headersOf are the headers of a table record: the claim of a null record, which has no row header.
func (p *part) headersOf(r row) []codecs.Header {
	if r.value == nil {
		return claimHeader(p.claim)
	}
	return nil
}
