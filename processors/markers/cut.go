package markers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quiesce/quiesce/codecs"
)

// Cut is the unit at a position, and what has to be done before the position may be committed: see the package comment.
type Cut struct {
	Position int64
	Ends     []End
	State    *codecs.UnitState
}

// End is a batch of which the unit has handled its whole share.
type End struct {
	Batch   Batch
	Plan    string // quiesce-mode of the markers to send
	Unit    *codecs.Unit
	Outputs []Output
	Counts  Counts
}

// String is one line: "b-7/r1/1 by parse/paths/0 to astsx4: 12 consumed, 1 failed".
func (e End) String() string {
	var out []string
	for _, o := range e.Outputs {
		out = append(out, o.String())
	}
	return fmt.Sprintf("%s by %s to %s: %d consumed, %d failed", e.Batch, e.Unit.Path(), strings.Join(out, ","),
		e.Counts.Consumed, e.Counts.Failed)
}

// Markers returns the END records to send, one for each partition of each output topic.
func (e End) Markers() []codecs.Record {
	tag := codecs.Tag{Batch: e.Batch.ID, Run: e.Batch.Run, Round: e.Batch.Round, Plan: e.Plan, Control: codecs.ControlEnd, From: e.Unit}
	headers := codecs.AppendTag(nil, &tag)
	var recs []codecs.Record
	for _, o := range e.Outputs {
		for p := range o.Partitions {
			recs = append(recs, codecs.Record{Topic: o.Topic, Partition: p, Value: []byte{}, Headers: headers})
		}
	}
	return recs
}

// Report is the data of the batch.end event; its key is the batch id.
func (e End) Report() *codecs.BatchEnd {
	return &codecs.BatchEnd{Run: e.Batch.Run, Round: e.Batch.Round, Unit: e.Unit, Consumed: e.Counts.Consumed,
		Failed: e.Counts.Failed, Produced: e.Counts.Produced}
}

// Cut takes the unit as it stands. The batches in Ends have ended for the unit.
func (u *Unit) Cut() Cut {
	c := Cut{Position: u.position}
	for _, b := range u.due {
		e := u.batches[b]
		c.Ends = append(c.Ends, End{Batch: b, Plan: e.plan.text, Unit: u.cfg.Unit, Outputs: u.outputs(e.plan), Counts: e.counts})
		u.ended++
		*e = entry{plan: e.plan, ended: true, order: u.ended}
	}
	u.due = nil
	u.forgetOld()
	c.State = u.State()
	return c
}

// forgetOld drops the names of the batches that ended first when there are too many.
func (u *Unit) forgetOld() {
	var old []Batch
	for b, e := range u.batches {
		if e.ended {
			old = append(old, b)
		}
	}
	if len(old) <= MaxEnded {
		return
	}
	slices.SortFunc(old, func(a, b Batch) int { return int(u.batches[a].order) - int(u.batches[b].order) })
	for _, b := range old[:len(old)-MaxEnded] {
		delete(u.batches, b)
	}
}
