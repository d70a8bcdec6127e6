package table

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/processors/batch"
)

const (
	wordPending = "pending"
	wordRunning = "running"

	maxChunks = 64 // opened for one page
)

// word is how a task is shown.
func word(t batch.Task) string {
	switch {
	case t.Outcome != codecs.Outcome_unspecified:
		return t.Outcome.String()
	case t.Running:
		return wordRunning
	}
	return wordPending
}

// Reasons are written after the row that they belong to: what a row has just come to know may have none yet. A read waits
// that long for them.
const (
	freshFor   = 5 * time.Second
	reasonWait = 500 * time.Millisecond
	reasonTick = 5 * time.Millisecond
)

// Tasks returns tasks by feeder and index. It opens a bounded number of chunks, so a page may be short before the end.
func (v *View) Tasks(id string, outcomes []string, from sidecar.Place, n int) (page sidecar.TaskPage, err error) {
	var run string
	var changed int64
	err = v.read(id, func(m *moment) (err error) {
		page, err = m.tasks(outcomes, from, n)
		run = page.Run
		s, _ := m.row.Snapshot()
		changed = max(s.EndedAt, s.LastProgress)
		return err
	})
	if err != nil {
		return page, err
	}
	give := time.Now()
	if give.Sub(time.UnixMilli(changed)) < freshFor {
		give = give.Add(reasonWait)
	}
	for i := range page.Tasks {
		for {
			found, err := v.reason(&page.Tasks[i], id, run)
			if err != nil {
				return page, err
			}
			if found || !time.Now().Before(give) {
				break
			}
			time.Sleep(reasonTick)
		}
	}
	return page, nil
}

func (m *moment) tasks(outcomes []string, from sidecar.Place, n int) (page sidecar.TaskPage, err error) {
	s, _ := m.row.Snapshot()
	page.Run = s.Run
	wanted := func(t batch.Task) bool { return len(outcomes) == 0 || slices.Contains(outcomes, word(t)) }
	ended := func(word string) bool { return word != wordPending && word != wordRunning }
	var skip func(batch.ChunkRef) bool
	if len(outcomes) > 0 && !slices.ContainsFunc(outcomes, ended) {
		skip = complete
	}
	page.Next, err = m.walk(from, skip, func(ref batch.ChunkRef, c *batch.Chunk, at uint32) (next *sidecar.Place) {
		if t, ok := alike(m.row, ref, c); ok && !wanted(t) {
			return nil
		}
		m.row.Tasks(ref, c, at, func(t batch.Task) bool {
			switch {
			case !wanted(t):
			case len(page.Tasks) == n:
				next = &sidecar.Place{Feeder: t.Feeder, Index: t.Index}
			default:
				page.Tasks = append(page.Tasks, api.Task{Feeder: t.Feeder, Index: t.Index, Outcome: word(t)})
			}
			return next == nil
		})
		return next
	})
	return page, err
}

// complete says that every task of a chunk has an outcome.
func complete(ref batch.ChunkRef) bool { return ref.Ended >= ref.Tasks }

// alike returns the first task of a chunk that has no row: all others are like it.
func alike(row *batch.Row, ref batch.ChunkRef, c *batch.Chunk) (t batch.Task, ok bool) {
	if c != nil {
		return t, false
	}
	ref.Tasks = min(1, ref.Tasks)
	row.Tasks(ref, c, 0, func(first batch.Task) bool { t, ok = first, true; return false })
	return t, ok
}

// walk visits the chunks of a batch from a place on until visit says where the next page begins, or maxChunks of them had
// to be read. skip leaves out chunks by what the header knows of them; those cost nothing.
func (m *moment) walk(from sidecar.Place, skip func(batch.ChunkRef) bool,
	visit func(ref batch.ChunkRef, c *batch.Chunk, at uint32) *sidecar.Place) (*sidecar.Place, error) {
	read := 0
	for at := from; ; {
		refs := m.row.Chunks(at.Feeder, at.Index, maxChunks)
		for _, ref := range refs {
			if skip != nil && skip(ref) {
				continue
			}
			first := ref.First
			if ref.Feeder == from.Feeder {
				first = max(first, from.Index)
			}
			if read == maxChunks {
				return &sidecar.Place{Feeder: ref.Feeder, Index: first}, nil
			}
			c, err := m.chunk(ref)
			if err != nil {
				return nil, err
			}
			if c != nil {
				read++
			}
			if next := visit(ref, c, first); next != nil {
				return next, nil
			}
		}
		if len(refs) < maxChunks {
			return nil, nil
		}
		last := refs[len(refs)-1]
		at = sidecar.Place{Feeder: last.Feeder, Index: last.First + codecs.ChunkSize}
		if at.Index == 0 { // beyond the last index
			at.Feeder++
		}
	}
}

// reasonsBack is how many records are looked at to find the range that a task is in: records of earlier rounds may stand
// between.
const reasonsBack = 64

// reason adds what the outcomes topic says of a task: for itself, or for the range of its chunk that it is in. A record
// that says another outcome than the row is of an earlier round; it is left out. found = false: nothing is said of it, or
// not yet.
func (v *View) reason(t *api.Task, id, run string) (found bool, err error) {
	switch t.Outcome {
	case wordPending, wordRunning, codecs.OK.String(), codecs.Unknown.String():
		return true, nil
	}
	looked := 0
	key := codecs.OutcomeKey(id, run, t.Index)
	prefix := key[:len(key)-2] // of the chunk: the upper half of the index
	err = said(v.reasons.Back(prefix, key+"\xff", func(_ string, value []byte) bool {
		o := &codecs.TaskOutcome{}
		looked++
		if proto.Unmarshal(value, o) != nil || o.Feeder != t.Feeder || o.Outcome.String() != t.Outcome ||
			o.Index > t.Index || max(o.Index, o.Last) < t.Index {
			return looked < reasonsBack
		}
		t.Reason, t.Attempt, t.Round, t.Reporter, t.At = o.Reason, o.Attempt, o.Round, o.Reporter, api.Int64(o.At)
		found = true
		return false
	}))
	return found, err
}
