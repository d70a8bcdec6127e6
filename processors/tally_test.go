package processors

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/quiesce/quiesce/codecs"
)

// tally is the machine of these tests: per key a set of indexes, in part rows of 64, and a header with absolute counts.
//
//	batch.report   items[].first: indexes to add; emits batch.progress with the count
//	batch.seal     total; at count = total it emits batch.completed, due
//	batch.command  verb panic (while the row is not repaired), grow (too large a row), flood (too many outputs),
//	               collect (terminal marker), deadline (args.deadlines.seal_by), repair
//	batch.nudge    emits batch.expired if the deadline has passed at the append time
type tally struct {
	step func(row *tallyRow, ev *codecs.Event) // looks on, or panics
	vary func() string                         // another decision at every step: not pure, to see who decides

	deltas bool      // mutant: the header counts what an event added, not what the part has
	nosy   bool      // mutant: a part takes nothing any more when its header is sealed
	header *tallyRow // that Parts was called with
}

type tallyRow struct {
	Counts   map[string]int `json:",omitempty"` // by part
	Count    int
	Total    int  `json:",omitempty"`
	Done     bool `json:",omitempty"`
	Deadline int64
	Now      int64
	Repaired bool `json:",omitempty"`
	Gone     bool `json:",omitempty"`
	Pad      string
	Steps    int
	key      string
}

type tallyPart struct {
	Set   []uint32
	chunk uint32
	added int
}

func (r *tallyRow) AppendBinary(b []byte) ([]byte, error) {
	v, err := json.Marshal(r)
	return append(b, v...), err
}
func (r *tallyRow) String() string {
	v, _ := json.Marshal(r)
	return string(v)
}
func (r *tallyPart) AppendBinary(b []byte) ([]byte, error) {
	v, err := json.Marshal(r)
	return append(b, v...), err
}
func (r *tallyPart) String() string { return fmt.Sprint(r.Set) }

var _ Machine = (*tally)(nil)

func (*tally) Role() string  { return codecs.GroupController }
func (*tally) Input() string { return codecs.TopicControl }
func (*tally) Decode(rec *codecs.Record, ev *codecs.Event) error {
	if string(rec.Value) == "panic" {
		panic("codec")
	}
	return codecs.Decode(rec, ev)
}
func (*tally) NewRow(key string) Row { return &tallyRow{key: key} }
func (*tally) NewPart(key string) Row {
	_, _, c, _ := codecs.SplitChunkKey(key)
	return &tallyPart{chunk: c}
}
func (*tally) LoadRow(key string, b []byte) (Row, error) {
	r := &tallyRow{key: key}
	return r, json.Unmarshal(b, r)
}
func (t *tally) LoadPart(key string, b []byte) (Row, error) {
	r := t.NewPart(key)
	return r, json.Unmarshal(b, r)
}

func (t *tally) Parts(row Row, _ int64, ev *codecs.Event) []string {
	if t.nosy {
		t.header = row.(*tallyRow)
	}
	rep, ok := ev.Data.(*codecs.BatchReport)
	if !ok || row.(*tallyRow).Gone {
		return nil
	}
	var keys []string
	for _, it := range rep.Items {
		if k := codecs.ChunkKey(ev.Key, "r", it.First/64); !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

func (t *tally) StepPart(part Row, _ int64, ev *codecs.Event) {
	p := part.(*tallyPart)
	if t.nosy && t.header.Total > 0 {
		return
	}
	for _, it := range ev.Data.(*codecs.BatchReport).Items {
		if i, found := slices.BinarySearch(p.Set, it.First); !found && it.First/64 == p.chunk {
			p.Set = slices.Insert(p.Set, i, it.First)
			p.added++
		}
	}
}

func (t *tally) Step(row Row, parts []Row, offset int64, ev *codecs.Event, out []codecs.Message) []codecs.Message {
	r := row.(*tallyRow)
	r.Now = max(r.Now, ev.Time)
	r.Steps++
	if t.step != nil {
		t.step(r, ev)
	}
	emit := func(topic, typ string, m *codecs.BatchEvent, due bool) {
		if t.vary != nil {
			m.Reason = t.vary()
		}
		out = append(out, codecs.Message{Topic: topic, Key: ev.Key, Type: typ, Data: m, Due: due})
	}
	switch data := ev.Data.(type) {
	case *codecs.BatchReport:
		if r.Gone {
			return out
		}
		if r.Counts == nil {
			r.Counts = map[string]int{}
		}
		for i, key := range t.Parts(row, offset, ev) {
			p, name := parts[i].(*tallyPart), key[strings.LastIndexByte(key, 0)+1:]
			if n := len(p.Set); t.deltas {
				r.Counts[name] += p.added
			} else {
				r.Counts[name] = n
			}
			p.added = 0
		}
		r.Count = 0
		for _, n := range r.Counts {
			r.Count += n
		}
		emit(codecs.TopicEvents, codecs.TypeBatchProgress, &codecs.BatchEvent{Counts: &codecs.Counts{Ok: uint32(r.Count)}}, false)
	case *codecs.BatchSeal:
		r.Total = int(data.Total)
		emit(codecs.TopicStatus, codecs.TypeBatchStatus, &codecs.BatchEvent{}, false)
		out[len(out)-1].Data = &codecs.BatchStatus{State: codecs.State_sealed}
	case *codecs.BatchCommand:
		out = t.command(r, ev, data, out)
	case *codecs.BatchNudge:
		if r.Deadline != 0 && ev.Time >= r.Deadline {
			r.Deadline = 0
			emit(codecs.TopicEvents, codecs.TypeBatchExpired, &codecs.BatchEvent{}, true)
		}
	}
	if r.Total > 0 && r.Count == r.Total && !r.Done {
		r.Done = true
		emit(codecs.TopicEvents, codecs.TypeBatchCompleted, &codecs.BatchEvent{Counts: &codecs.Counts{Ok: uint32(r.Count)}}, true)
		out[len(out)-1].ID = codecs.TerminalID(ev.Key, "r", 1)
	}
	return out
}

func (t *tally) command(r *tallyRow, ev *codecs.Event, c *codecs.BatchCommand, out []codecs.Message) []codecs.Message {
	switch c.Verb {
	case "panic":
		if !r.Repaired {
			panic("as told")
		}
	case "grow":
		r.Pad = strings.Repeat("x", t.MaxRowBytes())
	case "flood":
		for range 3 {
			out = append(out, codecs.Message{Topic: codecs.TopicEvents, Key: ev.Key, Type: codecs.TypeBatchProgress, Data: &codecs.BatchEvent{Reason: strings.Repeat("x", maxStepBytes/2)}})
		}
	case "repair":
		r.Repaired = true
	case "collect":
		r.Gone = true
	case "deadline":
		r.Deadline = c.Args.Deadlines.SealBy
	}
	return out
}

func (*tally) Deadline(row Row) int64 { return row.(*tallyRow).Deadline }
func (*tally) Nudge(key string) codecs.Message {
	return codecs.Message{Topic: codecs.TopicControl, Key: key, Type: codecs.TypeBatchNudge, Data: &codecs.BatchNudge{}}
}
func (*tally) Status(row Row, quarantined bool) (codecs.Message, bool) {
	r := row.(*tallyRow)
	return codecs.Message{Topic: codecs.TopicStatus, Key: r.key, Type: codecs.TypeBatchStatus, Data: &codecs.BatchStatus{State: codecs.State_sealed, Quarantined: quarantined}},
		r.Total > 0 && !r.Gone || quarantined
}
func (t *tally) Collect(row Row) ([]string, bool) {
	r := row.(*tallyRow)
	if !r.Gone {
		return nil, false
	}
	var parts []string
	for c := range r.Counts {
		parts = append(parts, codecs.ChunkKey(r.key, "r", uint32(len(c))*uint32(lastByte(c))))
	}
	slices.Sort(parts)
	return parts, true
}
func (*tally) Repairs(ev *codecs.Event) bool {
	c, ok := ev.Data.(*codecs.BatchCommand)
	return ok && c.Verb == "repair"
}
func (*tally) MaxRowBytes() int { return 64 << 10 }

// lastByte is the chunk number of a key of tallyRow.Counts; tests have few chunks.
func lastByte(s string) byte {
	if s == "" {
		return 0
	}
	return s[len(s)-1]
}
