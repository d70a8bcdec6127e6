package stage

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/markers"
)

// sendMarkers sends END on to every partition of every output.
func (d *Desk) sendMarkers(ends []markers.End) error {
	if len(ends) == 0 {
		return nil
	}
	var recs []*kgo.Record
	for _, end := range ends {
		for _, m := range end.Markers() {
			recs = append(recs, toKgo(&m))
		}
	}
	if err := produceAll(d.ctx, d.client, recs); err != nil {
		return fmt.Errorf("END markers of %d batches: %w", len(ends), err)
	}
	return d.cfg.Hook(PointMarkers)
}

// sendReports reports outcomes and ended batches to the control topic, outcomes first.
func (b *Book) sendReports(c *Cut) error {
	d := b.desk
	id := fmt.Sprintf("%s/%s/%d-%d", d.group, b.name.Path(), c.from, c.cut.Position)
	events, err := c.reports.events(id, d.cfg.ClientID)
	if err != nil {
		return err
	}
	for _, end := range c.cut.Ends {
		events = append(events, reportEvent{end.Batch.ID, codecs.Event{Type: codecs.TypeBatchEnd,
			ID: fmt.Sprintf("%s/%s/end", b.name.Path(), end.Batch), Data: end.Report()}})
	}
	if len(events) == 0 {
		return nil
	}
	recs := make([]*kgo.Record, len(events))
	for i := range events {
		rec, err := d.encoder.Encode(d.control, events[i].batch, &events[i].event)
		if err != nil {
			return err
		}
		recs[i] = toKgo(&rec)
	}
	if err := produceAll(d.ctx, d.client, recs); err != nil {
		return fmt.Errorf("reports to %s: %w", d.control, err)
	}
	return d.cfg.Hook(PointReports)
}
