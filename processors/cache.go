package processors

import (
	"fmt"

	"github.com/quiesce/quiesce/codecs"
)

// entry is a decoded row of the table. An absent row has row = nil until an event makes it.
type entry struct {
	Envelope
	key      string
	row      codecs.Row
	stored   bool // the store has a record of it
	inCut    *cut // the open cut that it is dirty in
	flying   int  // closed cuts that are not in the store yet
	size     int  // encoded
	weight   int  // as the cache counts it
	outBytes int  // of the outbox

	prev, next *entry
}

func (e *entry) clean() bool { return e.inCut == nil && e.flying == 0 }

// cache holds decoded rows, most recently used first. Only clean rows leave it: their record is in the store.
type cache struct {
	rows  map[string]*entry
	head  entry // ring
	size  int
	limit int  // of size
	dirty bool // mutant: evict whatever is oldest
}

const entryOverhead = 256

func (c *cache) init(limit int, dirty bool) {
	c.rows = map[string]*entry{}
	c.head.prev, c.head.next = &c.head, &c.head
	c.limit, c.dirty = limit, dirty
}

func (c *cache) get(key string) *entry {
	e := c.rows[key]
	if e != nil && c.head.next != e {
		e.unlink()
		c.front(e)
	}
	return e
}

func (c *cache) add(e *entry) {
	c.rows[e.key] = e
	c.front(e)
	e.weight = e.weigh()
	c.size += e.weight
	for tries := 0; c.size > c.limit && c.head.prev != e && tries < maxTries; tries++ {
		old := c.head.prev
		if old.clean() || c.dirty {
			c.remove(old)
			continue
		}
		old.unlink()
		c.front(old)
	}
}

// maxTries bounds the rows that are looked at for one that comes, since many may be dirty.
const maxTries = 8

// weigh is about how much memory the row takes.
func (e *entry) weigh() int {
	weight := e.size + entryOverhead
	if w, ok := e.row.(Weigher); ok {
		weight += w.Weight()
	}
	return weight
}

func (c *cache) remove(e *entry) {
	delete(c.rows, e.key)
	e.unlink()
	c.size -= e.weight
}

func (c *cache) resize(e *entry, size int) {
	e.size = size
	if c.rows[e.key] == e {
		c.size -= e.weight
		e.weight = e.weigh()
		c.size += e.weight
	}
}

func (c *cache) front(e *entry) {
	e.prev, e.next = &c.head, c.head.next
	e.prev.next, e.next.prev = e, e
}

func (e *entry) unlink() { e.prev.next, e.next.prev = e.next, e.prev }

// load returns the row of a key, from the cache or the store; an absent one has row = nil and Applied = -1.
func (p *part) load(key string, isPart bool) (*entry, error) {
	if e := p.cache.get(key); e != nil {
		return e, nil
	}
	e, err := p.read(key, isPart)
	if err != nil {
		return nil, err
	}
	p.cache.add(e)
	return e, nil
}

// read decodes the row of a key in the store.
func (p *part) read(key string, isPart bool) (*entry, error) {
	e := &entry{key: key, Envelope: Envelope{Applied: -1, Part: isPart, Epoch: p.done.epoch}}
	v, err := p.st.Get(key)
	if err != nil {
		return nil, fmt.Errorf("read row %q of the local copy: %w", key, err)
	}
	if v == nil {
		return e, nil
	}
	return e, p.decode(e, v)
}

func (p *part) decode(e *entry, v []byte) error {
	env, b, err := ParseEnvelope(v)
	if err != nil {
		return fmt.Errorf("row %q: %w", e.key, err)
	}
	if env.Epoch < p.done.epoch { // of an input topic before the adoption: all offsets start again
		env.Applied, env.outbox, env.Spans = -1, nil, openSpan(env.Spans)
	}
	env.Epoch = p.done.epoch
	e.Envelope, e.stored, e.size = env, true, len(v)
	if env.Part {
		e.row, err = p.machine.LoadPart(e.key, b)
	} else {
		e.row, err = p.machine.LoadRow(e.key, b)
	}
	if err != nil {
		return fmt.Errorf("row %q: %w", e.key, err)
	}
	for _, o := range e.outbox {
		e.outBytes += o.size()
	}
	return nil
}

// openSpan keeps a quarantine over an adoption.
func openSpan(spans []Span) []Span {
	if len(spans) == 0 || spans[len(spans)-1].To != 0 {
		return nil
	}
	return []Span{{Reason: spans[len(spans)-1].Reason}}
}
