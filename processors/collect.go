package processors

import (
	"slices"

	"github.com/quiesce/quiesce/codecs"
)

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
	if c, ok := p.candidate(e); ok {
		p.collect = append(p.collect, c)
	}
}

func (p *part) candidate(e *entry) (c candidate, ok bool) {
	if e.Part || e.row == nil {
		return candidate{}, false
	}
	parts, self := p.machine.Collect(e.row)
	return candidate{e.key, e.Applied, parts, self}, len(parts) > 0 || self
}

// maxRipe bounds the rows that one cut looks at to delete them, so that events need not wait for long.
const maxRipe = 1000

// ripe says whether the durable position has passed a candidate.
func (p *part) ripe(c *candidate) bool {
	return c.applied < p.written || p.off.nullBeforePosition || p.off.deleteAtOnce
}

func (p *part) anyRipe() bool {
	return slices.ContainsFunc(p.collect, func(c candidate) bool { return p.ripe(&c) })
}

// takeRipe removes ripe candidates from those that wait.
func (p *part) takeRipe() (ripe []candidate) {
	kept := p.collect[:0]
	for i := range p.collect {
		if c := &p.collect[i]; len(ripe) < maxRipe && p.ripe(c) {
			ripe = append(ripe, *c)
		} else {
			kept = append(kept, *c)
		}
	}
	clear(p.collect[len(kept):])
	p.collect = kept
	return ripe
}

// deleteRipe adds the null records of ripe candidates to a cut: parts first, so that no part outlives its header. A row
// that has changed since is left alone: it is considered again when its cut is done. Called with mu held.
func (p *part) deleteRipe(c *cut) {
	var heads []row
	for _, x := range p.takeRipe() {
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
