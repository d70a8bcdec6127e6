package batch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

// stored is one physical row with the offset that it has.
type stored struct {
	applied int64
	bytes   []byte
}

// env feeds a machine the way the runtime does: rows are encoded after every event and decoded before the next.
type env struct {
	t       testing.TB
	m       *Machine
	batch   string
	rows    map[string]stored // header and chunks
	offset  int64
	now     int64
	events  []string // short names of events, in order
	ends    []string // ids of terminal events
	sent    []codecs.Message
	orders  []*codecs.Dispatch
	cached  map[string]codecs.Row // when set, rows stay decoded, as in the runtime's cache
	history []codecs.Record
	wrong   bool             // the machine is: its counts may not add up
	own     []codecs.Message // what the machine sends to itself

	said     map[int64][]codecs.Message // by offset
	eachStep func()                     // after every event, the machine's own too
}

func newEnv(t testing.TB, off mutants) *env {
	m := New(Config{})
	m.off = off
	return &env{t: t, m: m, batch: "b", rows: map[string]stored{}, now: 1_000_000, said: map[int64][]codecs.Message{}}
}

func (e *env) header() *Row {
	if e.cached != nil {
		if r := e.cached[e.batch]; r != nil {
			return r.(*Row)
		}
	}
	s, ok := e.rows[e.batch]
	if !ok {
		return e.m.NewRow(e.batch).(*Row)
	}
	r, err := e.m.LoadRow(e.batch, s.bytes)
	require.NoError(e.t, err)
	return r.(*Row)
}

func (e *env) chunk(key string) *Chunk {
	if e.cached != nil {
		if r := e.cached[key]; r != nil {
			return r.(*Chunk)
		}
	}
	s, ok := e.rows[key]
	if !ok {
		return e.m.NewPart(key).(*Chunk)
	}
	r, err := e.m.LoadPart(key, s.bytes)
	require.NoError(e.t, err)
	return r.(*Chunk)
}

func (e *env) applied(key string) int64 {
	if s, ok := e.rows[key]; ok {
		return s.applied
	}
	return -1
}

func (e *env) store(key string, off int64, r codecs.Row) {
	if e.cached != nil {
		e.cached[key] = r
		e.rows[key] = stored{applied: off}
		return
	}
	b, err := r.AppendBinary(nil)
	require.NoError(e.t, err)
	require.LessOrEqual(e.t, len(b), e.m.MaxRowBytes())
	e.rows[key] = stored{off, b}
}

// record makes the record of an event at the next offset.
func (e *env) record(typ string, data proto.Message) codecs.Record {
	rec, err := codecs.Encode("quiesce.control", e.batch, "/quiesce/test", &codecs.Event{Type: typ, ID: fmt.Sprint("e", e.offset), Data: data})
	require.NoError(e.t, err)
	rec.Partition, rec.Offset, rec.Time = 0, e.offset, e.now
	e.offset++
	return rec
}

// step applies a new event.
func (e *env) step(typ string, data proto.Message) *Row {
	e.t.Helper()
	rec := e.record(typ, data)
	e.history = append(e.history, rec)
	row := e.feed(rec, func(m codecs.Message) {
		e.said[rec.Offset] = append(e.said[rec.Offset], m)
		e.note(m)
	})
	if e.eachStep != nil {
		e.eachStep()
	}
	for len(e.own) > 0 {
		m := e.own[0]
		e.own = e.own[1:]
		row = e.step(m.Type, m.Data)
	}
	return row
}

// feed applies a record to the rows that have not seen it; out gets the messages of the header's step.
func (e *env) feed(rec codecs.Record, out func(codecs.Message)) *Row {
	e.t.Helper()
	var ev codecs.Event
	require.NoError(e.t, e.m.Decode(&rec, &ev))
	h := e.header()
	var parts []codecs.Row
	for _, key := range e.m.Parts(h, rec.Offset, &ev) {
		if e.applied(key) >= rec.Offset {
			continue
		}
		c := e.chunk(key)
		e.m.StepPart(c, rec.Offset, &ev)
		parts = append(parts, c)
	}
	if e.applied(e.batch) < rec.Offset {
		for _, m := range e.m.Cut(h, e.m.Step(h, parts, rec.Offset, &ev, nil)) {
			out(m)
		}
		e.store(e.batch, rec.Offset, h)
	}
	for _, p := range parts {
		e.store(p.(*Chunk).key, rec.Offset, p)
	}
	if s, ok := h.Snapshot(); ok && !e.wrong && s.Sealed && s.State != codecs.State_inconsistent {
		c := s.Counts
		require.Equal(e.t, c.Total, c.Pending+c.Running+c.Ok+c.Failed+c.Skipped+c.Cancelled+c.TimedOut+c.Lost+c.Unknown, "%s", h)
	}
	if e.cached == nil {
		require.Equal(e.t, h.String(), e.header().String(), "a row is the same after it was written and read")
	}
	return h
}

func (e *env) note(m codecs.Message) {
	e.sent = append(e.sent, m)
	switch m.Topic {
	case codecs.TopicEvents:
		e.events = append(e.events, strings.TrimPrefix(m.Type, "batch."))
		if strings.HasSuffix(m.ID, "/terminal") {
			e.ends = append(e.ends, m.ID)
		}
	case codecs.TopicDispatch:
		e.orders = append(e.orders, m.Data.(*codecs.Dispatch))
	case codecs.TopicControl: // the machine's own nudge
		e.own = append(e.own, m)
	}
}

func (e *env) start(d *codecs.BatchStart) *Row {
	if d.Run == "" {
		d.Run = "r"
	}
	return e.step(codecs.TypeBatchStart, d)
}

func (e *env) seal(n uint32) *Row {
	return e.step(codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "r", Total: n})
}

func (e *env) report(items ...*codecs.ReportItem) *Row {
	return e.step(codecs.TypeBatchReport, &codecs.BatchReport{Run: "r", Items: items})
}

func (e *env) round(round, first, last uint32, o codecs.Outcome_Code) *Row {
	return e.step(codecs.TypeBatchReport, &codecs.BatchReport{Run: "r", Round: round, Items: []*codecs.ReportItem{codecs.NewItem(first, last, o)}})
}

func (e *env) command(id, verb string, args *codecs.CommandArgs) *Row {
	return e.step(codecs.TypeBatchCommand, &codecs.BatchCommand{Id: id, Verb: verb, Args: args})
}

func (e *env) nudge() *Row { return e.step(codecs.TypeBatchNudge, &codecs.BatchNudge{}) }
