package processors

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/cenkalti/backoff/v5"

	"github.com/quiesce/quiesce/codecs"
)

// group wraps sarama's consumer group under goka: goka's own marks are dropped (a cut marks once), consumption starts at
// the position rows, and a session that ends is followed by the next one at once.
type group struct {
	sarama.ConsumerGroup
	p *Processor
}

// Consume joins the group again and again until ctx ends.
func (g *group) Consume(ctx context.Context, topics []string, handler sarama.ConsumerGroupHandler) error {
	wait := g.p.backoff()
	for ctx.Err() == nil {
		sctx, end := context.WithCancelCause(ctx)
		h := &handlerWrap{ConsumerGroupHandler: handler, p: g.p, end: end}
		err := g.ConsumerGroup.Consume(sctx, topics, h)
		cause := context.Cause(sctx)
		end(nil)
		switch {
		case ctx.Err() != nil:
			return nil
		case g.p.cfg.off.gokaPause:
			return err
		case errors.Is(err, sarama.ErrClosedConsumerGroup):
			return err
		case err == nil && cause == nil: // a rebalance
			wait.Reset()
			continue
		case err == nil && h.ran() && errors.Is(cause, errStep): // the row is set aside next time
			continue
		case h.ran() && time.Since(h.began) > time.Minute:
			wait.Reset()
		}
		d := wait.NextBackOff()
		g.p.log.Warn("session ended, joining again", "cause", errors.Join(cause, err), "seconds", d.Seconds())
		if !sleep(ctx, d) {
			return nil
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (p *Processor) backoff() *backoff.ExponentialBackOff { return newBackoff(p.cfg.Timing) }

func newBackoff(t Timing) *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = t.Backoff, time.Minute
	b.Reset()
	return b
}

// handlerWrap stands between sarama and goka for one session.
type handlerWrap struct {
	sarama.ConsumerGroupHandler
	p     *Processor
	end   context.CancelCauseFunc
	s     *session
	began time.Time
}

func (h *handlerWrap) ran() bool { return h.s != nil && h.s.isReady() }

// Setup lets goka open the tables, which takes the partitions over, and moves the start to their positions.
func (h *handlerWrap) Setup(sess sarama.ConsumerGroupSession) error {
	h.began = time.Now()
	h.s = &session{cfg: h.p.cfg, env: h.p.env, tableID: h.p.tableID, group: sess, ctx: sess.Context(), end: h.end,
		parts: map[int32]*part{}, errs: map[int32]error{}, claims: sess.Claims()[h.p.env.input]}
	h.p.setSession(h.s)
	if err := h.ConsumerGroupHandler.Setup(markless{sess}); err != nil {
		return err
	}
	if err := context.Cause(sess.Context()); err != nil {
		return nil // the session is over, goka said nothing
	}
	committed := h.p.client.committed(sess.Context(), h.p.env.group, h.p.env.input)
	for id, part := range h.s.parts {
		if part.off.followGroup {
			continue
		}
		if at, ok := committed[id]; ok && at != part.next {
			h.p.m.ignored.Inc()
			h.p.log.Warn("the group's offset is not the table's position, which counts", "partition", id, "committed", at, "position", part.next)
		}
		sess.ResetOffset(part.input, id, part.next, "") // lower
		sess.MarkOffset(part.input, id, part.next, "")  // higher
	}
	h.s.setReady()
	return nil
}

// Cleanup lets goka close the tables, which does the last cuts; sarama commits their marks after it.
func (h *handlerWrap) Cleanup(sess sarama.ConsumerGroupSession) error {
	h.p.setSession(nil)
	return h.ConsumerGroupHandler.Cleanup(markless{sess})
}

// ConsumeClaim takes the messages of a partition.
func (h *handlerWrap) ConsumeClaim(sess sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	part := h.s.parts[claim.Partition()]
	if part == nil {
		return nil
	}
	if h.p.cfg.ThroughGoka {
		return h.ConsumerGroupHandler.ConsumeClaim(markless{sess}, claim)
	}
	rec := codecs.Record{Topic: claim.Topic(), Partition: claim.Partition()}
	done, messages := sess.Context().Done(), claim.Messages()
	for {
		select {
		case m, ok := <-messages:
			if !ok {
				return nil
			}
			fill(&rec, m)
			part.high.Store(claim.HighWaterMarkOffset())
			if err := part.handle(&rec); err != nil {
				return nil // reported by the part
			}
		case <-done:
			return nil
		}
	}
}

func fill(rec *codecs.Record, m *sarama.ConsumerMessage) {
	rec.Offset, rec.Time, rec.Key, rec.Value = m.Offset, m.Timestamp.UnixMilli(), m.Key, m.Value
	rec.Headers = rec.Headers[:0]
	for _, h := range m.Headers {
		rec.Headers = append(rec.Headers, codecs.Header{Key: codecs.HeaderName(h.Key), Value: h.Value})
	}
}

// markless is the session that goka sees: what it marks is not what is durable.
type markless struct{ sarama.ConsumerGroupSession }

func (markless) MarkOffset(string, int32, int64, string)     {}
func (markless) ResetOffset(string, int32, int64, string)    {}
func (markless) MarkMessage(*sarama.ConsumerMessage, string) {}

// session is one generation of the group as this member sees it.
type session struct {
	cfg     Config
	env     *env
	tableID codecs.TopicID
	group   sarama.ConsumerGroupSession
	ctx     context.Context
	end     context.CancelCauseFunc
	claims  []int32

	mu    sync.Mutex
	parts map[int32]*part
	errs  map[int32]error
	ready bool
}

func (s *session) add(p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[p.id] = p
}

// owned returns the parts. A part may be locked while it reports its end to the session: never the other way round.
func (s *session) owned() []*part {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.parts))
}

func (s *session) errOf(id int32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.errs[id]
}

func (s *session) setReady() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = true
}

func (s *session) isReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// refuse reports why a partition cannot be taken over.
func (s *session) refuse(id int32, err error) error {
	err = fmt.Errorf("take over %s/%d: %w", s.env.input, id, err)
	s.mu.Lock()
	s.errs[id] = err
	s.mu.Unlock()
	s.env.faultOf(id, err)
	return err
}

// failed is called once when an ownership ends; all but an ordered stop end the session.
func (s *session) failed(id int32, err error) {
	if errors.Is(err, errStopped) {
		return
	}
	err = fmt.Errorf("partition %d: %w", id, err)
	s.env.log.Error("partition failed", "partition", id, "error", err)
	s.mu.Lock()
	s.errs[id] = err
	s.mu.Unlock()
	s.end(err)
}
