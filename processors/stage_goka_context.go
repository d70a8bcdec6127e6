package processors

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lovoo/goka"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/stage"
)

type gokaContext = goka.Context

// attempt is the context of one attempt at a record: goka's, but what is set and emitted is kept until the attempt has
// succeeded.
type attempt struct {
	gokaContext
	cfg     *StageGroupConfig
	table   bool
	maxRow  int // bytes of a record of the table
	outputs []stage.Output
	changed bool
	value   []byte // nil = deleted
}

var _ goka.Context = (*attempt)(nil)

// failed is the panic of Fail.
type failed struct{ error }

// Fail ends the attempt. It does not stop the processor.
func (a *attempt) Fail(err error) { panic(failed{err}) }

func (a *attempt) refuse(what string) { a.Fail(stage.NoRetry(errors.New(what))) }

// Value is the value of the record's key in the table, with what this attempt has set.
func (a *attempt) Value() any {
	if !a.table {
		a.refuse("the stage has no table")
	}
	b := a.value
	if !a.changed {
		b, _ = a.gokaContext.Value().([]byte)
	}
	if b == nil {
		return nil
	}
	v, err := a.cfg.Table.Decode(b)
	if err != nil {
		a.Fail(stage.NoRetry(fmt.Errorf("table row of %q: %w", a.Key(), err)))
	}
	return v
}

// SetValue sets the value of the record's key.
func (a *attempt) SetValue(v any, _ ...goka.ContextOption) {
	if !a.table {
		a.refuse("the stage has no table")
	}
	b, err := a.cfg.Table.Encode(v)
	if err != nil || b == nil {
		a.Fail(stage.NoRetry(fmt.Errorf("table row of %q does not encode: %w", a.Key(), errors.Join(err, errNilRow(b)))))
	}
	row := codecs.Record{Key: []byte(a.Key()), Value: b}
	if size := row.Size(); size > a.maxRow {
		a.Fail(stage.NoRetry(fmt.Errorf("table row of %q: %d bytes, at most %d can be written", a.Key(), size, a.maxRow)))
	}
	a.changed, a.value = true, b
}

func errNilRow(b []byte) error {
	if b == nil {
		return errors.New("a row cannot be null: Delete it")
	}
	return nil
}

// Delete deletes the row of the record's key.
func (a *attempt) Delete(...goka.ContextOption) {
	if !a.table {
		a.refuse("the stage has no table")
	}
	a.changed, a.value = true, nil
}

// Emit sends a record to a declared output. The headers of its batch are added; others cannot be given.
func (a *attempt) Emit(topic goka.Stream, key string, v any, _ ...goka.ContextOption) {
	name := string(topic)
	if !slices.Contains(a.cfg.Stage.Topology.Stages[a.cfg.Stage.Stage].Out, name) {
		a.refuse(fmt.Sprintf("topic %q is not an output of the stage", name))
	}
	o := stage.Output{Topic: name, Key: []byte(key)}
	if v != nil {
		var err error
		if o.Value, err = codecOf(a.cfg.Outputs, name).Encode(v); err != nil {
			a.Fail(stage.NoRetry(fmt.Errorf("record for %s does not encode: %w", name, err)))
		}
	}
	a.outputs = append(a.outputs, o)
}

// Loopback is refused: a loop topic is not in the topology.
func (a *attempt) Loopback(string, any, ...goka.ContextOption) {
	a.refuse("a stage has no loop topic: declare a stage")
}

// DeferCommit is refused: a record is accounted when the callback has returned and what it did is durable.
func (a *attempt) DeferCommit() func(error) {
	a.refuse("a stage cannot defer its commit")
	return nil
}

// codecOf is the codec of a topic; bytes when none is given.
func codecOf(given map[string]Codec, topic string) Codec {
	if c := given[topic]; c != nil {
		return c
	}
	return raw{}
}

// run calls the callback once. What Fail said is the error; other panics go on to the wrapper, which makes them one.
func (a *attempt) run(rec *codecs.Record) (outs []stage.Output, err error) {
	var v any
	if rec.Value != nil {
		if v, err = codecOf(a.cfg.Inputs, rec.Topic).Decode(rec.Value); err != nil {
			return nil, stage.NoRetry(fmt.Errorf("value does not decode: %w", err))
		}
	}
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(failed)
			if !ok {
				panic(p)
			}
			outs, err = nil, f.error
		}
	}()
	a.cfg.Callback(a, v)
	return a.outputs, nil
}
