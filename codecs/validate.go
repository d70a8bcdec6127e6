package codecs

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of what one event may ask for.
const (
	MaxFeeders       = 1024
	MaxLegs          = 16
	MaxUnits         = 16384 // partitions, over all unit sets of a START
	MaxLabels        = 64
	MaxSubscriptions = 4
	MaxCommandID     = 256 // bytes
)

// Validate checks an input event: its key and every field of its data. It returns nil or FieldErrors, whose pointers
// are those of the JSON form; a pointer of /items/0/bitmap says the same for protobuf. Events that only Quiesce writes
// are not checked.
func Validate(ev *Event) error {
	if r, ok := ev.Data.(*BatchReport); ok && ev.Type == TypeBatchReport && isID(ev.Key) && plainReport(r) {
		return nil
	}
	var es FieldErrors
	if !isID(ev.Key) {
		es.add("", "key: "+ValidID("batch or job", ev.Key).Error())
	}
	if fn, ok := validators[ev.Type]; ok && ev.Data != nil {
		fn(checker{es: &es}, ev)
	}
	return es.err()
}

// validators check the data of the events that come from outside.
var validators = map[string]func(c checker, ev *Event){
	TypeBatchStart:    func(c checker, ev *Event) { c.batchStart(ev.Data.(*BatchStart)) },
	TypeBatchSeal:     func(c checker, ev *Event) { c.batchSeal(ev.Data.(*BatchSeal)) },
	TypeBatchReport:   func(c checker, ev *Event) { c.batchReport(ev.Data.(*BatchReport)) },
	TypeBatchEnd:      func(c checker, ev *Event) { c.batchEnd(ev.Data.(*BatchEnd)) },
	TypeBatchCommand:  func(c checker, ev *Event) { c.batchCommand(ev.Data.(*BatchCommand)) },
	TypeJobRequested:  func(c checker, ev *Event) { c.jobRequested(ev.Data.(*JobRequested)) },
	TypeJobCommand:    func(c checker, ev *Event) { c.jobCommand(ev.Data.(*JobCommand)) },
	TypeTaskCompleted: func(c checker, ev *Event) { c.taskCompleted(ev.Data.(*TaskCompleted)) },
	TypeSplitProposed: func(c checker, ev *Event) { c.splitProposed(ev.Data.(*SplitProposed)) },
}

// checker notes faults below a pointer.
type checker struct {
	at string
	es *FieldErrors
}

func (c checker) in(name string) checker { return checker{c.at + "/" + escapePointer(name), c.es} }
func (c checker) nth(i int) checker      { return checker{c.at + "/" + itoa(i), c.es} }

func (c checker) bad(field, reason string) { c.es.add(c.at+"/"+field, reason) }

func (c checker) id(field, s string) {
	if s == "" {
		c.bad(field, "missing")
	} else if !isID(s) {
		c.bad(field, idRule)
	}
}

func (c checker) optionalID(field, s string) {
	if s != "" {
		c.id(field, s)
	}
}

func (c checker) oneOf(field, s string, words ...string) {
	if s != "" && !slices.Contains(words, s) {
		c.bad(field, "not one of "+strings.Join(words, " "))
	}
}

func (c checker) text(field, s string, limit int) {
	if len(s) > limit {
		c.bad(field, "longer than "+itoa(limit)+" bytes")
	} else if !utf8.ValidString(s) {
		c.bad(field, "not valid UTF-8")
	}
}

func (c checker) notNegative(field string, n int64) {
	if n < 0 {
		c.bad(field, "negative")
	}
}

func (c checker) atMost(field string, n, limit int) {
	if n > limit {
		c.bad(field, "more than "+itoa(limit))
	}
}

// outcome checks a code; protobuf lets any number through.
func (c checker) outcome(field string, o Outcome_Code) {
	if o < 0 || int(o) >= len(worst) {
		c.bad(field, "not one of "+strings.Join(enumNames(o.Descriptor()), " "))
	}
}
