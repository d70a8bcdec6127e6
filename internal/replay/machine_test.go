package replay

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/processors"
)

func TestMain(m *testing.M) {
	// goleveldb frees its buffer pool up to a second after Close.
	drain := goleak.IgnoreTopFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain")
	goleak.VerifyTestMain(m, append(brokertest.Singletons(), drain)...)
}

// counter is a small machine with everything that a fold has to care for. A row counts events, a part the tasks of one
// chunk. A reporter named "panic" makes Step panic after it changed the row; the verb repair lifts the quarantine, gc gives
// the row up, gc of the reason "parts" its parts only.
type counter struct{}

var _ processors.Machine = counter{}

// count is a row: its numbers are all of its state.
type count struct {
	events, tasks uint64
	given         uint64 // 1 = the parts, 2 = all
	parts         uint64 // number of parts that were ever touched
}

func (c *count) AppendBinary(b []byte) ([]byte, error) {
	for _, n := range []uint64{c.events, c.tasks, c.given, c.parts} {
		b = binary.AppendUvarint(b, n)
	}
	return b, nil
}

func (c *count) String() string {
	return fmt.Sprintf("events=%d tasks=%d given=%d parts=%d", c.events, c.tasks, c.given, c.parts)
}

func loadCount(b []byte) (codecs.Row, error) {
	var n [4]uint64
	for i := range n {
		v, k := binary.Uvarint(b)
		if k <= 0 {
			return nil, fmt.Errorf("count: %x", b)
		}
		n[i], b = v, b[k:]
	}
	return &count{n[0], n[1], n[2], n[3]}, nil
}

func (counter) Role() string                                      { return "counter" }
func (counter) Input() string                                     { return codecs.TopicControl }
func (counter) Decode(rec *codecs.Record, ev *codecs.Event) error { return codecs.Decode(rec, ev) }
func (counter) NewRow(string) codecs.Row                          { return &count{} }
func (counter) NewPart(string) codecs.Row                         { return &count{} }
func (counter) LoadRow(_ string, b []byte) (codecs.Row, error)    { return loadCount(b) }
func (counter) LoadPart(_ string, b []byte) (codecs.Row, error)   { return loadCount(b) }

func (counter) Parts(_ codecs.Row, _ int64, ev *codecs.Event) (keys []string) {
	r, ok := ev.Data.(*codecs.BatchReport)
	if !ok {
		return nil
	}
	for _, it := range r.Items {
		keys = append(keys, codecs.ChunkKey(ev.Key, "r", it.First/codecs.ChunkSize))
	}
	return keys
}

func (counter) StepPart(part codecs.Row, _ int64, ev *codecs.Event) {
	part.(*count).tasks += uint64(len(ev.Data.(*codecs.BatchReport).Items))
}

func (counter) Step(row codecs.Row, parts []codecs.Row, _ int64, ev *codecs.Event, out []codecs.Message) []codecs.Message {
	c := row.(*count)
	c.events++
	c.parts = max(c.parts, uint64(len(parts)))
	switch m := ev.Data.(type) {
	case *codecs.BatchReport:
		c.tasks += uint64(len(m.Items))
		if m.Reporter == "panic" {
			panic("reporter says\npanic")
		}
		out = append(out, codecs.Message{Topic: codecs.TopicEvents, Key: ev.Key, Type: codecs.TypeBatchProgress,
			Data: &codecs.BatchEvent{Run: m.Run, Counts: &codecs.Counts{Ok: uint32(c.tasks)}}})
	case *codecs.BatchCommand:
		if m.Verb == "gc" {
			c.given = 2
			if m.Args.GetReason() == "parts" {
				c.given = 1
			}
		}
	}
	return out
}

func (counter) Collect(row codecs.Row) (parts []string, self bool) {
	if g := row.(*count).given; g > 0 {
		return []string{codecs.ChunkKey("b-1", "r", 0), codecs.ChunkKey("b-1", "r", 1)}, g == 2
	}
	return nil, false
}

func (counter) Deadline(codecs.Row) int64                      { return 0 }
func (counter) Nudge(string) codecs.Message                    { return codecs.Message{} }
func (counter) Status(codecs.Row, bool) (codecs.Message, bool) { return codecs.Message{}, false }
func (counter) MaxRowBytes() int                               { return 1 << 10 }
func (counter) Repairs(ev *codecs.Event) bool {
	m, ok := ev.Data.(*codecs.BatchCommand)
	return ok && m.Verb == "repair"
}

// log makes the records of a topic, key by key to their partitions.
type log struct {
	t          testing.TB
	partitions int32
	records    []*codecs.Record
	next       map[int32]int64
}

func newLog(t testing.TB, partitions int32) *log {
	return &log{t: t, partitions: partitions, next: map[int32]int64{}}
}

func (l *log) add(key string, ev codecs.Event, more ...codecs.Header) *codecs.Record {
	rec, err := codecs.Encode("q.control", key, "/quiesce/q/test", &ev)
	if err != nil {
		l.t.Fatal(err)
	}
	rec.Headers = append(rec.Headers, more...)
	return l.put(codecs.Partition(rec.Key, l.partitions), rec)
}

func (l *log) put(partition int32, rec codecs.Record) *codecs.Record {
	rec.Partition, rec.Offset, rec.Time = partition, l.next[partition], 1_764_547_200_000+int64(len(l.records))
	l.next[partition]++
	l.records = append(l.records, &rec)
	return &rec
}

func (l *log) report(key, reporter string, tasks ...uint32) *codecs.Record {
	m := &codecs.BatchReport{Run: "r", Reporter: reporter}
	for _, x := range tasks {
		m.Items = append(m.Items, codecs.NewItem(x, x, codecs.OK))
	}
	return l.add(key, codecs.Event{Type: codecs.TypeBatchReport, ID: fmt.Sprintf("id-%d", len(l.records)), Data: m})
}

func (l *log) command(key, verb, reason string) *codecs.Record {
	m := &codecs.BatchCommand{Id: "c", Verb: verb, Args: &codecs.CommandArgs{Reason: reason}}
	return l.add(key, codecs.Event{Type: codecs.TypeBatchCommand, ID: "c", Data: m})
}

func (l *log) file() (*File, string) {
	var b strings.Builder
	w, err := codecs.NewRecordWriter(&b, codecs.RecordedTopic{Topic: "q.control", ID: codecs.TopicID{7}, Partitions: l.partitions})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, rec := range l.records {
		if err := w.Write(rec); err != nil {
			l.t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		l.t.Fatal(err)
	}
	return writeFile(l.t, b.String()), b.String()
}
