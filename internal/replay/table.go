package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors"
)

// tablePart is what one partition of a changelog says.
type tablePart struct {
	rows     map[string]tableRow
	claims   processors.Judge
	position *codecs.Position // nil = none
	adopted  bool             // offsets in it are of more than one input topic
}

// tableRow is the last valid record of a key.
type tableRow struct {
	processors.Envelope
	row []byte
}

// readTable reads a changelog to its end. Records that stand behind a newer claim than their own are ignored.
func readTable(ctx context.Context, changelog Source) ([]tablePart, error) {
	parts := make([]tablePart, changelog.Topic().Partitions)
	for p := range parts {
		parts[p].rows = map[string]tableRow{}
	}
	err := changelog.Each(ctx, func(rec *codecs.Record) error { return parts[rec.Partition].take(rec) })
	if err != nil {
		return nil, fmt.Errorf("read table: %w", err)
	}
	return parts, nil
}

func (t *tablePart) take(rec *codecs.Record) error {
	stale, err := t.claims.Stale(rec)
	if err != nil || stale {
		return err
	}
	switch key := string(rec.Key); {
	case key == codecs.ClaimKey:
	case key == codecs.AdoptKey:
		t.adopted = true
	case key == codecs.PositionKey && rec.Value == nil:
		t.position = nil
	case key == codecs.PositionKey:
		_, row, _, err := codecs.ParseRow(rec.Value)
		if err != nil {
			return fmt.Errorf("position row: %w", err)
		}
		p, err := codecs.ParsePosition(row)
		if err != nil {
			return fmt.Errorf("position row: %w", err)
		}
		t.position = &p
	case codecs.IsReserved(rec.Key):
	case rec.Value == nil:
		delete(t.rows, key)
	default:
		e, row, err := processors.ParseEnvelope(rec.Value)
		if errors.Is(err, codecs.ErrNotARow) {
			return nil // foreign
		}
		if err != nil {
			return fmt.Errorf("row %s: %w", codecs.KeyString(key), err)
		}
		t.rows[key] = tableRow{e, row}
	}
	return nil
}
