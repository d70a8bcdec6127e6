package processors

import (
	"context"
	"fmt"
	"slices"

	"github.com/quiesce/quiesce/codecs"
)

// AdoptRecord is the record that an operator sends to every partition of a group's table, explicitly, while the group is
// stopped, to make it go on with another incarnation of its input topic. From it on offsets count in that topic.
func AdoptRecord(topic codecs.TopicID) (key, value []byte) {
	h := codecs.RowHeader{Format: codecs.RowFormat, Applied: -1}
	return []byte(codecs.AdoptKey), codecs.AppendRow(nil, h, topic[:], nil)
}

func parseAdopt(v []byte) (id codecs.TopicID, err error) {
	_, row, _, err := codecs.ParseRow(v)
	if err != nil || len(row) != len(id) {
		return id, fmt.Errorf("adopt record: %w", codecs.ErrNotARow)
	}
	copy(id[:], row)
	return id, nil
}

// adopt starts again at the first offset of the new incarnation. What was decided by inputs at or above the old position
// may not have been sent: it is sent once more, in order. The position row that ends the adoption raises the epoch: rows
// of a lower one have no offset in the new topic.
func (p *part) adopt(ctx context.Context, at position, first int64) (position, error) {
	p.log.Warn("input topic adopted", "topic", p.input, "partition", p.id, "from", at.Topic.String(), "to", p.topicID.String())
	var pending []*output
	err := p.st.Each(func(key, value []byte) error {
		if codecs.IsReserved(key) {
			return nil
		}
		e, _, err := ParseEnvelope(value)
		if err != nil {
			return fmt.Errorf("row %q: %w", key, err)
		}
		for _, o := range e.outbox {
			if o.source >= at.Offset && e.Epoch == at.epoch && o.topic != codecs.TopicStatus { // the status is repeated anyway
				pending = append(pending, o)
			}
		}
		return nil
	})
	if err != nil {
		return at, err
	}
	slices.SortStableFunc(pending, func(a, b *output) int { return int(a.source - b.source) })
	if err := p.sendOutputs(ctx, &cut{outputs: pending}); err != nil {
		return at, err
	}
	next := position{Position: codecs.Position{Topic: p.topicID, Offset: first}, epoch: at.epoch + 1, marks: at.marks}
	rows := []row{{codecs.PositionKey, next.encode(p.claim)}}
	acks, err := p.writeAgain(ctx, rows)
	if err != nil {
		return at, err
	}
	extra, err := p.repair(ctx, acks, rows)
	if err != nil {
		return at, err
	}
	if err := p.st.Write(append(rows, extra...), p.storeMark()); err != nil {
		return at, fmt.Errorf("write the local copy: %w", err)
	}
	return next, nil
}
