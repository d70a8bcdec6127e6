package repair

import (
	"fmt"
	"slices"

	"github.com/quiesce/quiesce/codecs"
)

// finder tells which dead letters are parked records of the row that wait.
type finder struct {
	row       Row
	log       codecs.RecordedTopic
	partition int32
	start     int64          // first offset that the log still has
	first     int64          // lowest offset of a parked record; -1 = there is none
	sent      map[int64]bool // offsets that were sent back before
	done      map[int64]bool // offsets that were looked at: a replay parks a record twice
}

// parked says whether a dead letter is a parked record of the row, and where it stood.
func (f *finder) parked(letter *codecs.Record) (*codecs.DeadLetter, bool) {
	if _, ok := letter.Header(codecs.HeaderDeadParked); !ok || string(letter.Key) != f.row.Key {
		return nil, false
	}
	d, err := codecs.ParseDeadLetter(letter)
	if err != nil || d.Topic != f.log.Topic || f.row.Upto > 0 && d.Offset >= f.row.Upto && d.Partition == f.partition {
		return nil, false
	}
	return d, true
}

// lowest finds the lowest offset at which a parked record stood.
func (f *finder) lowest(letter *codecs.Record) error {
	if d, ok := f.parked(letter); ok && f.here(d) && (f.first < 0 || d.Offset < f.first) {
		f.first = d.Offset
	}
	return nil
}

// here says whether a letter is of the log as it is now.
func (f *finder) here(d *codecs.DeadLetter) bool {
	return codecs.TopicID(d.TopicId) == f.log.ID && d.Partition == f.partition
}

// evidence reads from the log what was sent back before.
func (f *finder) evidence(rec *codecs.Record) error {
	v, ok := rec.Header(codecs.HeaderRepaired)
	if !ok || string(rec.Key) != f.row.Key {
		return nil
	}
	var p int32
	var o int64
	if _, err := fmt.Sscanf(string(v), "%d:%d", &p, &o); err == nil && p == f.partition {
		f.sent[o] = true
	}
	return nil
}

// next returns the record of a letter when it is to be sent back, and counts it.
func (f *finder) next(letter *codecs.Record, r *Result) (*codecs.Record, error) {
	d, ok := f.parked(letter)
	if !ok || f.here(d) && f.done[d.Offset] {
		return nil, nil
	}
	refuse := func(reason string) (*codecs.Record, error) {
		r.Refused = append(r.Refused, Refused{d.Offset, reason})
		return nil, nil
	}
	if !f.here(d) {
		return refuse("of a former incarnation of " + f.log.Topic + ", or of another partition")
	}
	f.done[d.Offset] = true
	if f.sent[d.Offset] {
		r.Before++
		return nil, nil
	}
	if d.Offset < f.start {
		return refuse(fmt.Sprintf("older than the log, which starts at offset %d: whether it was sent back is not known", f.start))
	}
	rec, err := codecs.Undead(letter)
	if err != nil {
		return refuse(err.Error())
	}
	earlier := func(h codecs.Header) bool { return h.Key == codecs.HeaderRepaired } // sent back, and parked again
	rec.Headers = append(slices.DeleteFunc(rec.Headers, earlier), codecs.Header{Key: codecs.HeaderRepaired, Value: fmt.Appendf(nil, "%d:%d", d.Partition, d.Offset)})
	r.Sent++
	return &rec, nil
}
