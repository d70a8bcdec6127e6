package codecs

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Tag is what the headers of a record on a user's topic say of the batch it belongs to. A service passes them on
// unchanged from the record it reads to the records it writes.
//
//	quiesce-batch    batch id             on every record of a batch
//	quiesce-run      run id
//	quiesce-index    root index, decimal  on data records
//	quiesce-round    decimal              absent = 1
//	quiesce-feeder   decimal              absent = 0: whose root index it is
//	quiesce-mode     see Plan             absent = ledger
//	quiesce-control  end                  on END markers: no key, an empty (not null) value
//	quiesce-source   <stage>/<topic>/<partition>  on END markers: the unit that sent it
type Tag struct {
	Batch, Run string
	Index      uint32
	Round      uint32 // 1, 2, ...
	Feeder     uint32 // 0, 1, ...
	Plan       string // text of a Plan, not parsed; "" = ledger
	Control    string // "" = data; ControlEnd; others are not for this reader and are to be skipped
	From       *Unit  // END markers only
	Trace      string // traceparent, "" = none
}

// ControlEnd marks END markers.
const ControlEnd = "end"

// IsControl says that the record carries no data of the user.
func (t *Tag) IsControl() bool { return t.Control != "" }

// ParseTag reads the headers of a user's record. ok is false for a record that belongs to no batch. An error names the
// header that is wrong: the record is of a batch, but cannot be counted.
func ParseTag(headers []Header) (t Tag, ok bool, err error) {
	ok, err = t.Parse(headers)
	return t, ok, err
}

// Parse is ParseTag into a tag that may be used again: texts that are the same as before cost nothing.
func (t *Tag) Parse(headers []Header) (ok bool, err error) {
	old := *t
	*t = Tag{}
	var texts tagTexts
	for i := range headers {
		v := headers[i].Value
		switch headers[i].Key {
		case HeaderBatch:
			t.Batch, ok = same(old.Batch, v), true
		case HeaderRun:
			t.Run = same(old.Run, v)
		case HeaderIndex:
			texts.index, texts.hasIndex = v, true
		case HeaderRound:
			texts.round = v
		case HeaderFeeder:
			texts.feeder = v
		case HeaderMode:
			t.Plan = same(old.Plan, v)
		case HeaderControl:
			t.Control, ok = same(old.Control, v), true
		case HeaderUnit:
			texts.unit = v
		case HeaderTraceparent:
			if ValidTraceparent(v) {
				t.Trace = string(v)
			}
		}
	}
	if !ok || t.Control != "" && t.Control != ControlEnd {
		return ok, nil
	}
	return true, t.judge(texts)
}

// tagTexts are the headers of a tag that are not kept as they are.
type tagTexts struct {
	index, round, feeder, unit []byte
	hasIndex                   bool
}

// judge checks the ids and reads the numbers.
func (t *Tag) judge(v tagTexts) (err error) {
	if err := ValidID(HeaderBatch, t.Batch); err != nil {
		return err
	}
	if err := ValidID(HeaderRun, t.Run); err != nil {
		return err
	}
	t.Round = 1
	if len(v.round) > 0 {
		if t.Round, err = headerNumber(HeaderRound, v.round); err != nil {
			return err
		}
		t.Round = max(t.Round, 1)
	}
	if len(v.feeder) > 0 {
		if t.Feeder, err = headerNumber(HeaderFeeder, v.feeder); err != nil {
			return err
		}
	}
	if t.Control == ControlEnd {
		t.From, err = ParseUnit(string(v.unit))
		return err
	}
	if !v.hasIndex {
		return fmt.Errorf("%s is missing beside %s %s", HeaderIndex, HeaderBatch, t.Batch)
	}
	t.Index, err = headerNumber(HeaderIndex, v.index)
	return err
}

// same returns v as a string, the old one if it is equal.
func same(old string, v []byte) string {
	if old == string(v) {
		return old
	}
	return string(v)
}

func headerNumber(name string, v []byte) (uint32, error) {
	n := uint64(0)
	for _, c := range v {
		if c < '0' || c > '9' || n > math.MaxUint32 {
			n = math.MaxUint64
			break
		}
		n = 10*n + uint64(c-'0')
	}
	if len(v) == 0 || n > math.MaxUint32 {
		return 0, fmt.Errorf("%s %q: not a whole number from 0 to 4294967295", name, clip(v))
	}
	return uint32(n), nil
}

// AppendTag appends the headers of t to those of a record that has none of them.
func AppendTag(headers []Header, t *Tag) []Header {
	add := func(name, v string) { headers = append(headers, Header{name, []byte(v)}) }
	add(HeaderBatch, t.Batch)
	add(HeaderRun, t.Run)
	if t.Control != "" {
		add(HeaderControl, t.Control)
		if t.From != nil {
			add(HeaderUnit, t.From.Path())
		}
	} else {
		add(HeaderIndex, strconv.FormatUint(uint64(t.Index), 10))
	}
	if t.Round > 1 {
		add(HeaderRound, strconv.FormatUint(uint64(t.Round), 10))
	}
	if t.Feeder > 0 {
		add(HeaderFeeder, strconv.FormatUint(uint64(t.Feeder), 10))
	}
	if t.Plan != "" {
		add(HeaderMode, t.Plan)
	}
	if t.Trace != "" {
		add(HeaderTraceparent, t.Trace)
	}
	return headers
}

// IsTag says whether a header is one of those that AppendTag writes (traceparent apart).
func IsTag(name string) bool {
	switch name {
	case HeaderBatch, HeaderRun, HeaderIndex, HeaderRound, HeaderControl, HeaderUnit, HeaderFeeder, HeaderMode:
		return true
	}
	return false
}

// EndMarker is the END marker that a unit sends to one partition of a topic when it has handled its share of a batch.
func EndMarker(topic string, partition int32, batch, run string, round uint32, from *Unit) Record {
	t := Tag{Batch: batch, Run: run, Round: round, Control: ControlEnd, From: from}
	return Record{Topic: topic, Partition: partition, Value: []byte{}, Headers: AppendTag(nil, &t)}
}

// Path is the unit as <stage>/<topic>/<partition>.
func (u *Unit) Path() string {
	return u.GetStage() + "/" + u.GetTopic() + "/" + strconv.FormatUint(uint64(u.GetPartition()), 10)
}

// ParseUnit reads what Path prints.
func ParseUnit(s string) (*Unit, error) {
	f := strings.Split(s, "/")
	if len(f) != 3 || !isID(f[0]) || !isTopic(f[1]) {
		return nil, fmt.Errorf("%s %q: not <stage>/<topic>/<partition>", HeaderUnit, clip([]byte(s)))
	}
	p, err := strconv.ParseUint(f[2], 10, 31)
	if err != nil {
		return nil, fmt.Errorf("%s %q: partition: not a number", HeaderUnit, clip([]byte(s)))
	}
	return &Unit{Stage: f[0], Topic: f[1], Partition: uint32(p)}, nil
}
