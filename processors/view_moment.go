package processors

import (
	"errors"

	"github.com/syndtr/goleveldb/leveldb"

	"github.com/quiesce/quiesce/codecs"
)

// Moment is the header row of a key and its parts, as they stand in the log up to one record. A cut writes the header
// first: a part may still be behind its header, never before it.
type Moment struct {
	ViewRow
	v    *View
	part *viewPart
	snap *leveldb.Snapshot
}

// Moment calls fn with a key's header row and its parts; ok = false: there is none, and fn is not called. fn must not
// call other methods of the view.
func (v *View) Moment(key string, fn func(m *Moment) error) (ok bool, err error) {
	parts, done, err := v.read()
	if err != nil {
		return false, err
	}
	defer done()
	p := parts[codecs.Partition([]byte(key), int32(len(parts)))]
	snap, err := p.disk.db.GetSnapshot()
	if err != nil {
		return false, p.check(err)
	}
	defer snap.Release()
	m := &Moment{v: v, part: p, snap: snap}
	if m.ViewRow, ok, err = m.Part(key); err != nil || !ok {
		return false, err
	}
	return true, fn(m)
}

// Part returns the row of another key of the same id; ok = false: there is none.
func (m *Moment) Part(key string) (r ViewRow, ok bool, err error) {
	b, err := m.snap.Get([]byte(key), nil)
	if errors.Is(err, leveldb.ErrNotFound) {
		return r, false, nil
	}
	if err != nil {
		return r, false, m.part.check(err)
	}
	r, err = m.v.load(m.part.id, key, b)
	return r, err == nil, err
}
