package stage

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/markers"
	"github.com/quiesce/quiesce/topology"
)

// wrapper turns records into what is to be sent and reported. It knows the topology and no client.
type wrapper struct {
	stage  string
	flow   Flow
	log    *slog.Logger
	tracer trace.Tracer

	declared []string            // topics that the handler may send to
	outputs  []string            // of these, the ones whose records stay in the batch
	legs     map[string][]uint32 // by input topic: legs that its records reach
	through  map[string][]uint32 // by output topic: legs behind it
	all      uint32              // number of legs of the topology
	counts   topology.Partitions // now, for batches that pinned none
	sizes    map[string]int      // by declared topic: the largest record that may be sent there
	pinned   planCache
}

func newWrapper(cfg Config, f facts) *wrapper {
	t := cfg.Topology
	s := t.Stages[cfg.Stage]
	w := &wrapper{stage: cfg.Stage, flow: cfg.Flow, log: cfg.Log, tracer: cfg.Tracer,
		declared: s.Out, outputs: t.Outputs(cfg.Stage), legs: map[string][]uint32{}, through: map[string][]uint32{},
		all: uint32(len(t.Legs())), counts: f.counts, sizes: map[string]int{}}
	for _, topic := range s.Out {
		w.sizes[topic] = min(cfg.Flow.MaxRecord, f.size(topic))
	}
	for _, topic := range s.In {
		w.legs[topic] = t.ReachableLegs(cfg.Stage, topic)
	}
	for _, topic := range w.outputs {
		for _, reader := range t.Readers(topic) {
			for _, leg := range t.ReachableLegs(reader, topic) {
				if !slices.Contains(w.through[topic], leg) {
					w.through[topic] = append(w.through[topic], leg)
				}
			}
		}
	}
	return w
}

// Result is everything that follows from one record.
type Result struct {
	Send    []codecs.Record // children in the handler's order, or the dead letter
	items   []item          // outcomes to report
	legs    uint32          // of the topology, in mode ledger
	machine markers.Result  // for the batch's markers
	cascade bool            // the batch counts its records in the markers' machine
	verdict verdict
}

// OK says that the handler succeeded.
func (r *Result) OK() bool { return r.verdict.outcome == codecs.OK }

// item is the outcome of a task on one leg.
type item struct {
	index, leg uint32
	outcome    codecs.Outcome_Code
	reason     string
	attempt    uint32
}

// Handle handles a data record and fills res, whose slices are used again. An error means that ctx ended first: nothing
// is known of the record.
func (d *Desk) Handle(ctx context.Context, rec *codecs.Record, tag *codecs.Tag, h Handler, res *Result) error {
	err := d.wrap.handle(ctx, rec, tag, h, res)
	if err == nil && res.verdict.outcome == codecs.Failed {
		res.Send = append(res.Send, d.DeadLetter(rec, res.verdict.reason))
	}
	return err
}

func (w *wrapper) handle(ctx context.Context, rec *codecs.Record, tag *codecs.Tag, h Handler, res *Result) error {
	r := &Record{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset, Time: time.UnixMilli(rec.Time), Key: rec.Key,
		Value: rec.Value, Headers: rec.Headers, Batch: tag.Batch, Run: tag.Run, Round: tag.Round, Feeder: tag.Feeder, Index: tag.Index}
	plan := w.pinned.get(tag.Plan)
	ledger := tag.Batch != "" && plan.mode == topology.ModeLedger
	*res = Result{Send: res.Send[:0], items: res.items[:0], cascade: tag.Batch != "" && !ledger}
	if ledger {
		res.legs = w.all
	}
	ctx, span := w.start(ctx, r, tag)
	v, err := w.attempt(ctx, r, h, ledger)
	if err != nil {
		span.end(v, err)
		return err
	}
	if err := w.children(res, rec, plan, span.traceparent(), v.outputs); err != nil {
		v.outputs, v.outcome, v.reason = nil, codecs.Failed, err.Error()
	}
	res.verdict = v
	switch {
	case tag.Batch == "":
	case ledger:
		w.ledgerItems(res, rec.Topic, tag.Index, r.Attempt)
	default:
		res.machine = markers.Result{Failed: v.outcome == codecs.Failed, Produced: producedBy(w.outputs, v.outputs)}
		if res.machine.Failed {
			res.items = append(res.items, item{index: tag.Index, outcome: v.outcome, reason: v.reason, attempt: uint32(r.Attempt)})
		}
	}
	span.end(v, nil)
	return nil
}

// children makes the records to send: all of them, or none and the reason why one cannot be sent.
func (w *wrapper) children(res *Result, rec *codecs.Record, plan *pinnedPlan, traceparent string, outs []Output) error {
	if len(outs) == 0 {
		return nil
	}
	base := inherited(rec.Headers, traceparent)
	for i := range outs {
		c := w.child(rec, plan, base, &outs[i], i)
		if size, most := c.Size(), w.sizes[c.Topic]; size > most {
			res.Send = res.Send[:0]
			return fmt.Errorf("output %d to %s: %d bytes, at most %d can be sent", i, c.Topic, size, most)
		}
		res.Send = append(res.Send, c)
	}
	return nil
}

// ledgerItems are the outcomes that this stage decides: at an end its own leg's, at a record that goes no further those
// of every leg behind it, and of a record that goes further only those of the legs it does not go to.
func (w *wrapper) ledgerItems(res *Result, topic string, index uint32, attempt int) {
	v := &res.verdict
	if v.outcome != codecs.OK || len(w.outputs) == 0 {
		for _, leg := range w.legs[topic] {
			res.items = append(res.items, item{index, leg, v.outcome, v.reason, uint32(attempt)})
		}
		return
	}
	for _, out := range w.outputs {
		if slices.ContainsFunc(v.outputs, func(o Output) bool { return o.Topic == out }) {
			continue
		}
		for _, leg := range w.through[out] {
			res.items = append(res.items, item{index, leg, codecs.Skipped, "", uint32(attempt)})
		}
	}
}

func producedBy(topics []string, outs []Output) map[string]uint64 {
	if len(outs) == 0 {
		return nil
	}
	n := make(map[string]uint64, len(topics))
	for i := range outs {
		if slices.Contains(topics, outs[i].Topic) {
			n[outs[i].Topic]++
		}
	}
	return n
}

// inherited returns the headers that every child of a record gets: those of its batch, and the trace.
func inherited(headers []codecs.Header, traceparent string) []codecs.Header {
	if traceparent == "" && !slices.ContainsFunc(headers, func(h codecs.Header) bool { return !passedOn(h.Key) }) {
		return headers[:len(headers):len(headers)]
	}
	base := make([]codecs.Header, 0, len(headers)+1)
	for _, h := range headers {
		if passedOn(h.Key) && (h.Key != codecs.HeaderTraceparent || traceparent == "") {
			base = append(base, h)
		}
	}
	if traceparent != "" {
		base = append(base, codecs.Header{Key: codecs.HeaderTraceparent, Value: []byte(traceparent)})
	}
	return base[:len(base):len(base)]
}

func passedOn(header string) bool { return codecs.IsTag(header) || header == codecs.HeaderTraceparent }

// child makes the record of an output. Its partition is a function of the record that it comes from and of the count
// that its batch pinned: a repeat lands on the same one, also after the topic has grown.
func (w *wrapper) child(rec *codecs.Record, p *pinnedPlan, base []codecs.Header, o *Output, i int) codecs.Record {
	c := codecs.Record{Topic: o.Topic, Key: o.Key, Value: o.Value}
	n := p.partitions[o.Topic]
	if n == 0 {
		n = w.counts[o.Topic]
	}
	if o.Key != nil {
		c.Partition = codecs.Partition(o.Key, n)
	} else {
		c.Partition = int32((rec.Offset + int64(i)) % int64(n))
	}
	if !slices.Contains(w.outputs, o.Topic) { // a sink: outside the batch
		base = nil
	}
	c.Headers = base
	for _, h := range o.Headers {
		switch {
		case codecs.IsTag(h.Key):
		case h.Key == codecs.HeaderTraceparent:
			c.Headers = slices.DeleteFunc(slices.Clone(c.Headers), func(b codecs.Header) bool { return b.Key == h.Key })
			c.Headers = append(c.Headers, h)
		default:
			c.Headers = append(c.Headers[:len(c.Headers):len(c.Headers)], h)
		}
	}
	return c
}
