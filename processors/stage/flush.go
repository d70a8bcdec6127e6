package stage

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/markers"
)

// flush makes what run handled durable, cut by cut, and returns when run has returned and the last cut is done.
func (u *unit) flush() {
	defer close(u.done)
	linger := time.NewTimer(time.Hour)
	defer linger.Stop()
	for last := false; !last; {
		select {
		case <-u.wake:
			linger.Reset(u.s.cfg.Flow.ReportAfter)
			select {
			case <-u.urgent:
			case <-linger.C:
			case <-u.ended:
				last = true
			}
		case <-u.ended:
			last = true
		}
		if u.dead.Load() {
			return
		}
		if err := u.cut(); err != nil {
			if !u.dead.Swap(true) {
				u.s.fail(fmt.Errorf("unit %s: %w", u.name.Path(), err))
			}
			return
		}
	}
}

// cut takes everything that was handled so far through the order that keeps it right: outputs acked, END markers acked,
// reports acked, and only then the position may be committed.
func (u *unit) cut() error {
	u.mu.Lock()
	outputs, collected, from := u.outputs, u.reports, u.from
	cut := u.machine.Cut()
	u.tally.Ended += uint64(len(cut.Ends))
	tally := u.tally
	u.outputs, u.reports, u.from, u.tally = &epoch{}, reports{}, cut.Position, Count{}
	u.waking, u.hurried = false, false
	u.mu.Unlock()
	if cut.Position == from {
		return nil
	}
	u.s.cfg.Counters.add(u.name, func(c *Count) { c.merge(tally) })
	if err := u.s.cfg.Hook(PointCut); err != nil {
		return err
	}
	if err := outputs.wait(); err != nil {
		return fmt.Errorf("outputs below %d: %w", cut.Position, err)
	}
	if err := u.s.cfg.Hook(PointOutputs); err != nil {
		return err
	}
	if err := u.sendMarkers(cut.Ends); err != nil {
		return err
	}
	if err := u.sendReports(cut, &collected, from); err != nil {
		return err
	}
	cut.State.TopicId = u.topicID[:]
	u.commitMu.Lock()
	u.durable = cut.State
	u.commitMu.Unlock()
	return nil
}

// sendMarkers sends END on to every partition of every output.
func (u *unit) sendMarkers(ends []markers.End) error {
	if len(ends) == 0 {
		return nil
	}
	var recs []*kgo.Record
	for _, end := range ends {
		for _, m := range end.Markers() {
			recs = append(recs, toKgo(&m))
		}
	}
	if err := produceAll(u.s.produceCtx, u.s.client, recs); err != nil {
		return fmt.Errorf("END markers of %d batches: %w", len(ends), err)
	}
	return u.s.cfg.Hook(PointMarkers)
}

// sendReports reports outcomes and ended batches to the control topic, outcomes first.
func (u *unit) sendReports(cut markers.Cut, collected *reports, from int64) error {
	id := fmt.Sprintf("%s/%s/%d-%d", u.s.group, u.name.Path(), from, cut.Position)
	events, err := collected.events(id, u.s.cfg.ClientID)
	if err != nil {
		return err
	}
	for _, end := range cut.Ends {
		events = append(events, reportEvent{end.Batch.ID, codecs.Event{Type: codecs.TypeBatchEnd,
			ID: fmt.Sprintf("%s/%s/end", u.name.Path(), end.Batch), Data: end.Report()}})
	}
	if len(events) == 0 {
		return nil
	}
	recs := make([]*kgo.Record, len(events))
	for i := range events {
		rec, err := u.s.encoder.Encode(u.s.control, events[i].batch, &events[i].event)
		if err != nil {
			return err
		}
		recs[i] = toKgo(&rec)
	}
	if err := produceAll(u.s.produceCtx, u.s.client, recs); err != nil {
		return fmt.Errorf("reports to %s: %w", u.s.control, err)
	}
	return u.s.cfg.Hook(PointReports)
}
