package processors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/IBM/sarama"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/stage"
)

// stageConsumers wraps sarama's consumer group under goka: a session that ends is followed by the next one at once, and
// what goka marks is not what is durable.
type stageConsumers struct {
	sarama.ConsumerGroup
	life *stageLife
}

// Consume joins the group again and again until ctx ends.
func (g *stageConsumers) Consume(ctx context.Context, topics []string, handler sarama.ConsumerGroupHandler) error {
	wait := newBackoff(g.life.cfg.Timing)
	for ctx.Err() == nil {
		sctx, end := context.WithCancelCause(ctx)
		h := &stageHandler{ConsumerGroupHandler: handler, life: g.life, end: end}
		err := g.ConsumerGroup.Consume(sctx, topics, h)
		cause := context.Cause(sctx)
		end(nil)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, sarama.ErrClosedConsumerGroup):
			return err
		case err == nil && cause == nil: // a rebalance
			wait.Reset()
			continue
		}
		d := wait.NextBackOff()
		g.life.log.Warn("session ended, joining again", "cause", errors.Join(cause, err), "seconds", d.Seconds())
		if !sleep(ctx, d) {
			return nil
		}
	}
	return nil
}

// stageHandler stands between sarama and goka for one session.
type stageHandler struct {
	sarama.ConsumerGroupHandler
	life *stageLife
	end  context.CancelCauseFunc
	s    *stageSession
}

// stageSession is one generation of the group as this member sees it.
type stageSession struct {
	sarama.ConsumerGroupSession
	units map[string]map[int32]*stageUnit // by topic and partition
}

type sessionRef struct{ atomic.Pointer[stageSession] }

// MarkOffset takes goka's mark of a record.
func (s *stageSession) MarkOffset(topic string, partition int32, offset int64, _ string) {
	if u := s.units[topic][partition]; u != nil {
		u.marked(offset - 1)
	}
}

// MarkMessage is MarkOffset for a message.
func (s *stageSession) MarkMessage(m *sarama.ConsumerMessage, _ string) {
	s.MarkOffset(m.Topic, m.Partition, m.Offset+1, "")
}

// ResetOffset is not goka's to do.
func (s *stageSession) ResetOffset(string, int32, int64, string) {}

// Setup takes the units over, lets goka recover the tables, and moves the start to the units' positions.
func (h *stageHandler) Setup(sess sarama.ConsumerGroupSession) error {
	books, err := h.life.desk.Restore(sess.Context(), sess.Claims())
	if err != nil {
		return err
	}
	h.s = &stageSession{ConsumerGroupSession: sess, units: map[string]map[int32]*stageUnit{}}
	for _, b := range books {
		name := b.Unit()
		topic, id := name.Topic, int32(name.Partition)
		text, err := b.Metadata(sess.Context())
		if err != nil {
			return err
		}
		sess.ResetOffset(topic, id, b.Position(), text) // lower
		sess.MarkOffset(topic, id, b.Position(), text)  // higher
		if h.s.units[topic] == nil {
			h.s.units[topic] = map[int32]*stageUnit{}
		}
		h.s.units[topic][id] = newStageUnit(sess.Context(), b, h.life.cfg.Stage.Flow,
			func(position int64, metadata string) { sess.MarkOffset(topic, id, position, metadata) },
			func(err error) { h.end(fmt.Errorf("unit %s: %w", name.Path(), err)) })
	}
	for _, u := range h.s.all() {
		go u.run()
	}
	h.life.current.Store(h.s)
	return h.ConsumerGroupHandler.Setup(h.s)
}

func (s *stageSession) all() (units []*stageUnit) {
	for _, byID := range s.units {
		for _, u := range byID {
			units = append(units, u)
		}
	}
	return units
}

// Cleanup lets goka finish what it works on and close the tables; then the units settle what is durable, and sarama
// commits their marks.
func (h *stageHandler) Cleanup(sess sarama.ConsumerGroupSession) error {
	if h.s == nil { // the units were not taken over
		return h.ConsumerGroupHandler.Cleanup(sess)
	}
	err := h.ConsumerGroupHandler.Cleanup(h.s)
	h.life.current.Store(nil)
	var wg sync.WaitGroup
	for _, u := range h.s.all() {
		wg.Go(u.drain)
	}
	wg.Wait()
	return err
}

// ConsumeClaim lets goka consume, with our session.
func (h *stageHandler) ConsumeClaim(_ sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	return h.ConsumerGroupHandler.ConsumeClaim(h.s, claim)
}

// callback takes every record that goka hands out: one after the other in a partition, of all inputs.
func (l *stageLife) callback(ctx Context, value any) {
	s := l.current.Load()
	if s == nil {
		return // the session is over: nothing of it is accounted
	}
	rec := recordOf(ctx, value)
	u := s.units[rec.Topic][rec.Partition]
	if u == nil || u.dead.Load() {
		return
	}
	tag, ok, err := codecs.ParseTag(rec.Headers)
	switch {
	case err != nil:
		l.reject(ctx, u, &rec, &tag, err.Error())
	case ok && tag.IsControl():
		u.expect(&rec, &tag, controlRecord)
	case !ok && !l.cfg.Stage.Untagged:
		l.reject(ctx, u, &rec, &tag, "record without batch headers")
	default:
		l.handle(ctx, u, &rec, &tag)
	}
}

// recordOf copies a record out of goka's context. goka keeps headers in a map: their order is lost, and of repeated
// names the last one is left.
func recordOf(ctx Context, value any) codecs.Record {
	rec := codecs.Record{Topic: string(ctx.Topic()), Partition: ctx.Partition(), Offset: ctx.Offset(), Time: ctx.Timestamp().UnixMilli()}
	if key := ctx.Key(); key != "" {
		rec.Key = []byte(key)
	}
	rec.Value, _ = value.([]byte)
	headers := ctx.Headers()
	names := make([]string, 0, len(headers))
	for k := range headers {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		rec.Headers = append(rec.Headers, codecs.Header{Key: k, Value: headers[k]})
	}
	return rec
}

// reject sends a record to the dead letter and nowhere else.
func (l *stageLife) reject(ctx Context, u *stageUnit, rec *codecs.Record, tag *codecs.Tag, reason string) {
	l.log.Warn("record sent to the dead letter", "topic", rec.Topic, "partition", rec.Partition, "offset", rec.Offset, "reason", reason)
	u.expect(rec, tag, rejectedRecord)
	l.send(ctx, []codecs.Record{l.desk.DeadLetter(rec, reason)})
}

// send sends records. goka marks the record that they come from when they are acked, and not when one fails.
func (l *stageLife) send(ctx Context, recs []codecs.Record) {
	for i := range recs {
		done := ctx.DeferCommit()
		l.desk.Write(&recs[i], func(_ int64, err error) { done(err) })
	}
}

// handle handles a data record. The row is looked up once before: a store that cannot be read stops the processor, and
// is not the record's failure.
func (l *stageLife) handle(ctx Context, u *stageUnit, rec *codecs.Record, tag *codecs.Tag) {
	table, maxRow := l.cfg.Table != nil, l.desk.MaxBytes(tableOf(l.declared().Group))
	misplaced := table && (rec.Key == nil || codecs.Partition(rec.Key, l.topics.partitions[tableOf(l.declared().Group)]) != rec.Partition)
	if table && !misplaced {
		_ = ctx.Value()
	}
	p := u.expect(rec, tag, dataRecord)
	var last *attempt
	err := l.desk.Handle(ctx.Context(), rec, tag, func(context.Context, *stage.Record) ([]stage.Output, error) {
		if misplaced {
			return nil, stage.NoRetry(fmt.Errorf("key %q is not of partition %d: a stage with a table needs keyed records on their partition",
				rec.Key, rec.Partition))
		}
		last = &attempt{gokaContext: ctx, cfg: &l.cfg, table: table, maxRow: maxRow}
		return last.run(rec)
	}, &p.res)
	if err != nil {
		u.crash(errStopped)
		return
	}
	l.send(ctx, p.res.Send)
	if last == nil || !last.changed || !p.res.OK() {
		return
	}
	if last.value == nil {
		ctx.Delete()
	} else {
		ctx.SetValue(last.value)
	}
}
