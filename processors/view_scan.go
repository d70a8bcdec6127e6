package processors

import (
	"bytes"
	"fmt"

	"github.com/syndtr/goleveldb/leveldb/iterator"
	"github.com/syndtr/goleveldb/leveldb/util"

	"github.com/quiesce/quiesce/codecs"
)

// Scan returns at most n header rows with keys above after, in key order over all partitions, and the key to go on
// after; "" = the end. It costs n rows, whatever the size of the table. A row that exists during a whole walk is seen
// exactly once.
func (v *View) Scan(after string, n int) (page []ViewRow, next string, err error) {
	parts, done, err := v.read()
	if err != nil {
		return nil, "", err
	}
	defer done()
	heads := make([]*cursor, 0, len(parts))
	defer func() {
		for _, c := range heads {
			c.it.Release()
		}
	}()
	for _, p := range parts {
		c := &cursor{part: p, it: p.disk.db.NewIterator(&util.Range{Start: above(after)}, nil)}
		heads = append(heads, c)
		if err := c.header(v.cfg.Header); err != nil {
			return nil, "", err
		}
	}
	for {
		c := least(heads)
		if c == nil {
			return page, "", nil
		}
		if len(page) == n {
			return page, page[n-1].Key, nil
		}
		r, err := v.load(c.part.id, string(c.it.Key()), c.it.Value())
		if err != nil {
			return nil, "", err
		}
		page = append(page, r)
		if err := c.header(v.cfg.Header); err != nil {
			return nil, "", err
		}
	}
}

// cursor stands on a header row of a partition, or is at the end.
type cursor struct {
	part *viewPart
	it   iterator.Iterator
	end  bool
}

// header moves on to the next header row, leaping over the parts of ids.
func (c *cursor) header(isHeader func(string) bool) error {
	ok := c.it.Next()
	for ok && !isHeader(string(c.it.Key())) {
		ok = c.it.Seek(afterKey(codecs.BatchOf(c.it.Key())))
	}
	c.end = !ok
	return c.part.check(c.it.Error())
}

func least(heads []*cursor) *cursor {
	var first *cursor
	for _, c := range heads {
		if !c.end && (first == nil || bytes.Compare(c.it.Key(), first.it.Key()) < 0) {
			first = c
		}
	}
	return first
}

// afterKey is the first key behind an id and all of its parts; of "" that behind the reserved keys.
func afterKey(id []byte) []byte { return append(append([]byte{}, id...), 1) }

// above is the first key above a header row's; of "" that behind the reserved keys. A header row may stand right there:
// the key of another one and 0x00.
func above(key string) []byte {
	if key == "" {
		return afterKey(nil)
	}
	return append([]byte(key), 0)
}

// Select calls each with the header rows whose keys are wanted, partition by partition in key order, until each returns
// false. It looks at every key of the table, and decodes only what is wanted.
func (v *View) Select(wanted func(key string) bool, each func(r ViewRow) bool) error {
	parts, done, err := v.read()
	if err != nil {
		return err
	}
	defer done()
	for _, p := range parts {
		if more, err := v.selectIn(p, wanted, each); err != nil || !more {
			return err
		}
	}
	return nil
}

func (v *View) selectIn(p *viewPart, wanted func(key string) bool, each func(r ViewRow) bool) (more bool, err error) {
	c := &cursor{part: p, it: p.disk.db.NewIterator(&util.Range{Start: above("")}, nil)}
	defer c.it.Release()
	for {
		if err := c.header(v.cfg.Header); err != nil || c.end {
			return err == nil, err
		}
		key := string(c.it.Key())
		if !wanted(key) {
			continue
		}
		r, err := v.load(p.id, key, c.it.Value())
		if err != nil {
			return false, err
		}
		if !each(r) {
			return false, nil
		}
	}
}

// Parts calls each with the part rows of an id from a key on, in key order, until each returns false. from is a whole
// table key, for example codecs.ChunkKey; the rows end with the last key that starts with prefix.
func (v *View) Parts(prefix, from string, each func(r ViewRow) bool) error {
	parts, done, err := v.read()
	if err != nil {
		return err
	}
	defer done()
	p := parts[codecs.Partition([]byte(prefix), int32(len(parts)))]
	r := util.BytesPrefix([]byte(prefix))
	if from > prefix {
		r.Start = []byte(from)
	}
	it := p.disk.db.NewIterator(r, nil)
	defer it.Release()
	for it.Next() {
		row, err := v.load(p.id, string(it.Key()), it.Value())
		if err != nil {
			return err
		}
		if !each(row) {
			return nil
		}
	}
	if err := p.check(it.Error()); err != nil {
		return fmt.Errorf("parts of %q: %w", prefix, err)
	}
	return nil
}
