package table

import (
	"errors"
	"time"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/batch"
)

// moment is a batch's row and its chunks, read at the same place of the table.
type moment struct {
	record
	m *processors.Moment
	// lenient takes a chunk that is behind its header as it is.
	lenient bool
}

// errTorn: the header of a cut is here, one of its chunks is not yet.
var errTorn = errors.New("a chunk is behind its header")

// tornWait bounds the wait for the rest of a cut. Its records follow each other in the log.
const tornWait = 2 * time.Second

// read calls fn with a batch, again for as long as a cut of it is here in part only. fn starts from nothing each time.
func (v *View) read(id string, fn func(m *moment) error) error {
	changed, stop := v.rows.Watch(id)
	defer stop()
	var over <-chan time.Time
	for lenient := false; ; {
		ok, err := v.rows.Moment(id, func(m *processors.Moment) error {
			return fn(&moment{recordOf(m.ViewRow), m, lenient})
		})
		switch {
		case err == nil && !ok:
			return sidecar.ErrUnknown
		case !errors.Is(err, errTorn):
			return said(err)
		case over == nil:
			t := time.NewTimer(tornWait)
			defer t.Stop()
			over = t.C
		}
		select {
		case <-changed:
		case <-over:
			lenient = true
		}
	}
}

// chunk reads a chunk's row; nil = there is none.
func (m *moment) chunk(ref batch.ChunkRef) (*batch.Chunk, error) {
	r, ok, err := m.m.Part(ref.Key)
	if err != nil {
		return nil, err
	}
	var c *batch.Chunk
	if ok {
		c, _ = r.Row.(*batch.Chunk)
	}
	if m.lenient || ref.Ended == 0 {
		return c, nil
	}
	ended := uint32(0)
	m.row.Tasks(ref, c, 0, func(t batch.Task) bool {
		if t.Outcome != codecs.Outcome_unspecified {
			ended++
		}
		return true
	})
	if ended < ref.Ended {
		return nil, errTorn
	}
	return c, nil
}
