package replay

import (
	"fmt"
	"io"
	"strings"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors"
)

// folder is one pass over the source.
type folder struct {
	machine    processors.Machine
	local      bool // rows belong to the partitions of their events
	group      string
	partitions int32
	topicID    codecs.TopicID
	faults     map[place]string
	progress   func(int64)
	out        io.Writer // nil = no transcript
	state      *State
	marks      map[origin]mark
	ev         codecs.Event
	msgs       []codecs.Message
}

// origin is a source partition of records that a machine emitted; mark the last one read from it.
type origin struct {
	into      int32
	group     string
	topic     [16]byte
	partition int32
}

type mark struct {
	offset int64
	index  int32
}

func newFolder(cfg FoldConfig, faults map[place]string) *folder {
	topic := cfg.Source.Topic()
	return &folder{
		machine: cfg.Machine, local: processors.IsLocal(cfg.Machine), group: codecs.Group(cfg.Prefix, cfg.Machine.Role()), partitions: topic.Partitions, topicID: topic.ID,
		faults: faults, progress: cfg.Progress, marks: map[origin]mark{}, state: newState(),
	}
}

// accept takes the next record.
func (f *folder) accept(rec *codecs.Record) error {
	s := f.state
	s.Records++
	if f.progress != nil {
		defer f.progress(s.Records)
	}
	_, moved := rec.Header(codecs.HeaderMoved)
	if len(rec.Key) > 0 && !f.local && codecs.Partition(rec.Key, f.partitions) != rec.Partition {
		if moved {
			return f.dead(rec, "wrong partition, moved once already")
		}
		s.Moved++
		return f.note(rec, "moved to partition %d", codecs.Partition(rec.Key, f.partitions))
	}
	if reason := f.decode(rec); reason != "" {
		return f.dead(rec, reason)
	}
	if f.ev.Src.Group != "" && !processors.Detour(rec) && f.repeat(rec.Partition) {
		s.Repeats++
		return f.note(rec, "repeat of %s", f.ev.Src)
	}
	return f.apply(rec)
}

// decode returns why a record cannot be read; "" when it can.
func (f *folder) decode(rec *codecs.Record) (reason string) {
	if len(rec.Key) == 0 {
		return codecs.ErrNoKey.Error()
	}
	defer func() {
		if r := recover(); r != nil {
			reason = fmt.Sprintf("decoder panicked: %v", r)
		}
	}()
	if err := f.machine.Decode(rec, &f.ev); err != nil {
		return err.Error()
	}
	return ""
}

// repeat says whether the record's source was read before, and remembers it.
func (f *folder) repeat(into int32) bool {
	src := &f.ev.Src
	k := origin{into, src.Group, src.TopicID, src.Partition}
	last, ok := f.marks[k]
	if ok && (src.Offset < last.offset || src.Offset == last.offset && src.Index <= last.index) {
		return true
	}
	f.marks[k] = mark{src.Offset, src.Index}
	return false
}

// apply lets the machine step, as the runtime does.
func (f *folder) apply(rec *codecs.Record) error {
	at := place{rec.Partition, rec.Offset}
	head := f.state.row(f.ev.Key, rec.Partition, f.machine.NewRow)
	reason, faulty := f.faults[at]
	switch {
	case faulty && head.Quarantined == "":
		head.Quarantined, head.wasQuarantined = reason, true
		fallthrough
	case head.Quarantined != "" && !f.machine.Repairs(&f.ev):
		head.Applied = rec.Offset
		return f.dead(rec, head.Quarantined)
	}
	head.Quarantined = ""
	if err := f.step(rec.Offset, head, at); err != nil {
		return err
	}
	if err := f.note(rec, "%s", &f.ev); err != nil {
		return err
	}
	for i := range f.msgs {
		m := f.msgs[i]
		if m.ID == "" {
			m.ID = codecs.Src{Group: f.group, TopicID: f.topicID, Partition: rec.Partition, Offset: rec.Offset, Index: int32(i)}.String()
		}
		f.state.Messages++
		if err := f.print("  > %s", &m); err != nil {
			return err
		}
	}
	f.collect(head)
	return nil
}

// step calls the machine; its panic is an error.
func (f *folder) step(offset int64, head *Row, at place) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &stepPanic{at, oneLine(fmt.Sprint(r))}
		}
	}()
	var parts []codecs.Row
	for _, key := range f.machine.Parts(head.Row, offset, &f.ev) {
		p := f.state.row(key, at.partition, f.machine.NewPart)
		p.Part = true
		if p.Applied < offset {
			f.machine.StepPart(p.Row, offset, &f.ev)
			p.Applied = offset
		}
		parts = append(parts, p.Row)
	}
	f.msgs = f.machine.Step(head.Row, parts, offset, &f.ev, f.msgs[:0])
	head.Applied = offset
	return nil
}

// collect deletes what the machine gives up.
func (f *folder) collect(head *Row) {
	parts, self := f.machine.Collect(head.Row)
	for _, key := range parts {
		f.state.drop(key)
	}
	if self {
		f.state.drop(head.Key)
	}
}

func (f *folder) dead(rec *codecs.Record, reason string) error {
	f.state.Dead++
	return f.note(rec, "dead letter: %s", reason)
}

func (f *folder) note(rec *codecs.Record, format string, args ...any) error {
	if f.out == nil {
		return nil
	}
	return f.print("%d:%d %s", rec.Partition, rec.Offset, fmt.Sprintf(format, args...))
}

func (f *folder) print(format string, args ...any) error {
	if f.out == nil {
		return nil
	}
	if _, err := fmt.Fprintf(f.out, format+"\n", args...); err != nil {
		return fmt.Errorf("write transcript: %w", err)
	}
	return nil
}

// oneLine bounds the text of a panic.
func oneLine(s string) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(s[:min(len(s), 256)], "?")), " ")
}
