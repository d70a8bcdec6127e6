package table

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors"
)

// file puts one record where it belongs and returns the batch that it changed; "" = a partition's position.
func (v *View) file(k *kgo.Record) (string, error) {
	rec := codecs.Record{Topic: k.Topic, Partition: k.Partition, Offset: k.Offset, Time: k.Timestamp.UnixMilli(), Key: k.Key, Value: k.Value}
	for _, h := range k.Headers {
		rec.Headers = append(rec.Headers, codecs.Header(h))
	}
	if k.Topic == v.outcomes {
		return v.fileOutcome(&rec), nil
	}
	p := v.parts[k.Partition]
	if p == nil {
		p = &partition{rows: map[string]*record{}, chunks: map[string][]byte{}}
		v.parts[k.Partition] = p
	}
	stale, err := p.judge.Stale(&rec)
	if err != nil || stale {
		return "", err
	}
	key := string(k.Key)
	switch {
	case key == codecs.PositionKey:
		return "", p.move(&rec)
	case codecs.IsReserved(k.Key):
		return "", nil
	case k.Value == nil:
		v.idsDirty = true
		delete(p.rows, key)
		delete(p.chunks, key)
		return string(codecs.BatchOf(k.Key)), nil
	}
	e, row, err := processors.ParseEnvelope(k.Value)
	if errors.Is(err, codecs.ErrNotARow) {
		return "", nil // foreign
	}
	if err != nil {
		return "", fmt.Errorf("row %s: %w", codecs.KeyString(key), err)
	}
	if e.Part {
		p.chunks[key] = row
		return string(codecs.BatchOf(k.Key)), nil
	}
	if p.rows[key] == nil {
		v.idsDirty = true
	}
	p.rows[key] = &record{Envelope: e, id: key, partition: k.Partition, bytes: row}
	return key, nil
}

// move takes the partition's position.
func (p *partition) move(rec *codecs.Record) error {
	if rec.Value == nil {
		p.position = 0
		return nil
	}
	_, row, _, err := codecs.ParseRow(rec.Value)
	if err != nil {
		return fmt.Errorf("position row: %w", err)
	}
	at, err := codecs.ParsePosition(row)
	if err != nil {
		return fmt.Errorf("position row: %w", err)
	}
	p.position = at.Offset
	return nil
}

// ranged is what was said of a range of tasks at once.
type ranged struct {
	*codecs.TaskOutcome
	run string
}

// fileOutcome keeps the reason of a task or a range. Records that cannot be read are not ours.
func (v *View) fileOutcome(rec *codecs.Record) string {
	id := string(codecs.BatchOf(rec.Key))
	if rec.Value == nil {
		delete(v.reasons, string(rec.Key))
		return id
	}
	var ev codecs.Event
	if codecs.Decode(rec, &ev) != nil {
		return id
	}
	o, ok := ev.Data.(*codecs.TaskOutcome)
	if !ok {
		return id
	}
	v.reasons[string(rec.Key)] = o
	if o.Last > o.Index {
		if _, run, _, ok := codecs.SplitChunkKey(string(rec.Key)); ok {
			v.ranges[id] = append(v.ranges[id], ranged{o, run})
		}
	}
	return id
}
