package processors

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

// oracle is the slow obvious fold of an input log: one event after the other, nothing remembered but rows.
type oracle struct {
	rows        map[string]*tallyRow
	parts       map[string]*tallyPart
	applied     map[string]int64
	quarantined map[string]bool
	outputs     []string // "<offset>/<index> <topic> <type> <key> <data>" in order, for events
	dead        []int64
	seen        map[codecs.Src]bool
}

func (w *world) oracle() *oracle {
	o := &oracle{rows: map[string]*tallyRow{}, parts: map[string]*tallyPart{}, applied: map[string]int64{}, quarantined: map[string]bool{}, seen: map[codecs.Src]bool{}}
	m := &tally{}
	for _, rec := range w.log(wInput).recs {
		o.take(m, rec)
	}
	return o
}

func (o *oracle) take(m *tally, rec *codecs.Record) {
	var ev codecs.Event
	if err := m.Decode(rec, &ev); err != nil {
		o.dead = append(o.dead, rec.Offset)
		return
	}
	if ev.Src.Group != "" {
		if o.seen[ev.Src] {
			return
		}
		o.seen[ev.Src] = true
	}
	c, _ := ev.Data.(*codecs.BatchCommand)
	if o.rows[ev.Key] == nil {
		o.rows[ev.Key] = m.NewRow(ev.Key).(*tallyRow)
	}
	row := o.rows[ev.Key]
	o.applied[ev.Key] = rec.Offset
	if o.quarantined[ev.Key] && !m.Repairs(&ev) || c != nil && c.Verb == "panic" && !row.Repaired {
		o.quarantined[ev.Key] = true
		o.dead = append(o.dead, rec.Offset)
		return
	}
	o.quarantined[ev.Key] = false
	var parts []Row
	for _, k := range m.Parts(row, rec.Offset, &ev) {
		if o.parts[k] == nil {
			o.parts[k] = m.NewPart(k).(*tallyPart)
		}
		m.StepPart(o.parts[k], rec.Offset, &ev)
		parts = append(parts, o.parts[k])
	}
	for i, msg := range m.Step(row, parts, rec.Offset, &ev, nil) {
		if msg.Topic == codecs.TopicEvents {
			o.outputs = append(o.outputs, describe(rec.Offset, i, msg.Type, msg.Key, msg.Data))
		}
	}
}

func describe(offset int64, index int, typ, key string, data proto.Message) string {
	if e, ok := data.(*codecs.BatchEvent); ok {
		e = proto.Clone(e).(*codecs.BatchEvent)
		e.Reason = ""
		data = e
	}
	b, _ := proto.MarshalOptions{Deterministic: true}.Marshal(data)
	return fmt.Sprintf("%d/%d %s %s %x", offset, index, typ, key, b)
}

// verdict compares what is in the world with the oracle. Everything must be settled.
func (w *world) verdict() error {
	o := w.oracle()
	if err := w.sameRows(o); err != nil {
		return err
	}
	if err := w.sameOutputs(o); err != nil {
		return err
	}
	if err := w.sameDead(o); err != nil {
		return err
	}
	return w.sameStatus(o)
}

func (w *world) sameRows(o *oracle) error {
	recs, err := w.table(wTable)
	if err != nil {
		return err
	}
	for key, row := range o.rows {
		rec := recs[key]
		delete(recs, key)
		if row.Gone {
			if rec != nil {
				return fmt.Errorf("REGRESSED: collected row %s is there: %s", key, rec.Value)
			}
			continue
		}
		if rec == nil {
			return fmt.Errorf("LOST: row %s is missing, want %s", key, row)
		}
		env, b, err := ParseEnvelope(rec.Value)
		if err != nil {
			return err
		}
		got, err := (&tally{}).LoadRow(key, b)
		if err != nil {
			return err
		}
		if got.String() != row.String() || env.Applied != o.applied[key] || env.Quarantined() != o.quarantined[key] {
			return fmt.Errorf("WRONG: row %s is %s applied %d quarantined %v, want %s applied %d quarantined %v",
				key, got, env.Applied, env.Quarantined(), row, o.applied[key], o.quarantined[key])
		}
	}
	for key, rec := range recs {
		if strings.HasPrefix(key, "\x00") {
			continue
		}
		if p := o.parts[key]; p == nil || o.rows[string(codecs.BatchOf([]byte(key)))].Gone {
			return fmt.Errorf("GHOST: row %q: %s", key, rec.Value)
		} else if _, b, err := ParseEnvelope(rec.Value); err != nil {
			return err
		} else if want, _ := p.AppendBinary(nil); !bytes.Equal(b, want) {
			return fmt.Errorf("WRONG: part %q is %s, want %s", key, b, want)
		}
	}
	for key := range o.parts {
		if recs[key] == nil && !o.rows[string(codecs.BatchOf([]byte(key)))].Gone {
			return fmt.Errorf("LOST: part %q is missing", key)
		}
	}
	return nil
}

// sameOutputs reads the events as a receiver does: repeats are dropped by one mark per source partition. The same id
// must always have the same bytes.
func (w *world) sameOutputs(o *oracle) error {
	got := []string{}
	ids := map[string][]byte{}
	terminal := map[string]string{}
	seen := marks{}
	for _, rec := range w.log(wEvents).recs {
		var ev codecs.Event
		if err := codecs.Decode(rec, &ev); err != nil {
			return err
		}
		src := ev.Src.String()
		if was, ok := ids[src]; ok && !bytes.Equal(was, rec.Value) {
			return fmt.Errorf("CONTRADICTION: %s is %x and %x", src, was, rec.Value)
		}
		ids[src] = rec.Value
		if ev.Type == codecs.TypeBatchCompleted {
			if was, ok := terminal[ev.ID]; ok && was != src {
				return fmt.Errorf("TWICE: %s from %s and %s", ev.ID, was, src)
			}
			terminal[ev.ID] = src
		}
		if !seen.repeat(&ev.Src) {
			got = append(got, describe(ev.Src.Offset, int(ev.Src.Index), ev.Type, ev.Key, ev.Data))
		}
	}
	for i := range max(len(got), len(o.outputs)) {
		switch {
		case i >= len(got):
			return fmt.Errorf("LOST: output %s", o.outputs[i])
		case i >= len(o.outputs):
			return fmt.Errorf("EXTRA: output %s", got[i])
		case got[i] != o.outputs[i]:
			return fmt.Errorf("WRONG: output %d is %s, want %s", i, got[i], o.outputs[i])
		}
	}
	return nil
}

func (w *world) sameDead(o *oracle) error {
	got := map[int64]bool{}
	for _, rec := range w.log(wDead).recs {
		v, _ := rec.Header(codecs.HeaderDeadOffset)
		var n int64
		if _, err := fmt.Sscan(string(v), &n); err != nil {
			return fmt.Errorf("dead letter without offset: %w", err)
		}
		got[n] = true
	}
	if g := slices.Sorted(maps.Keys(got)); !slices.Equal(g, o.dead) {
		return fmt.Errorf("dead letters of offsets %v, want %v", g, o.dead)
	}
	return nil
}

// sameStatus reads the status topic by claim.
func (w *world) sameStatus(o *oracle) error {
	recs, err := w.table(wStatus)
	if err != nil {
		return err
	}
	for key, row := range o.rows {
		m, ok := (&tally{}).Status(row, o.quarantined[key])
		if !ok {
			continue
		}
		if recs[key] == nil {
			return fmt.Errorf("status of %s is missing", key)
		}
		_, b, _, err := codecs.ParseRow(recs[key].Value)
		if err != nil {
			return err
		}
		var got codecs.BatchStatus
		if err := proto.Unmarshal(b, &got); err != nil {
			return err
		}
		if !proto.Equal(&got, m.Data) {
			return fmt.Errorf("status of %s is %v, want %v", key, &got, m.Data)
		}
	}
	return nil
}
