package processors

import (
	"context"
	"fmt"
	"time"

	"github.com/quiesce/quiesce/codecs"
)

// takeOver makes this process the owner of a partition:
//
//	claim record -> local copy follows the changelog up to the claim -> stale keys written again -> position ->
//	adoption, if the input topic is another one -> status repeated, timers and deletes collected
//
// Nothing that another owner still writes can count from the claim record on.
func takeOver(ctx context.Context, e *env, id int32, st store) (*part, error) {
	p := newPart(e, id, st)
	p.table = lane{topic: e.table, next: -1}
	p.status = lane{topic: codecs.Topic(e.prefix, codecs.TopicStatus), next: -1}
	b := newBurst(1, false)
	b.send(e.out, e.table, id, []byte(codecs.ClaimKey), claimRecord(0, e.owner), nil)
	acks, err := b.wait(ctx)
	if err != nil {
		return nil, fmt.Errorf("claim partition %d: %w", id, err)
	}
	p.claim = uint64(acks[0])
	p.table.next = acks[0] + 1
	p.hook(PointClaimed, id)
	if err := p.recover(ctx); err != nil {
		return nil, fmt.Errorf("recover partition %d: %w", id, err)
	}
	p.hook(PointRecovered, id)
	if err := p.startPosition(ctx); err != nil {
		return nil, fmt.Errorf("partition %d: %w", id, err)
	}
	if err := p.survey(ctx); err != nil {
		return nil, fmt.Errorf("partition %d: %w", id, err)
	}
	p.doneAt = time.Now()
	p.moved = p.doneAt
	return p, nil
}

// recover brings the local copy up to the claim.
func (p *part) recover(ctx context.Context) error {
	at := p.st.At()
	start, err := p.logs.Start(ctx, p.table.topic, p.id)
	if err != nil {
		return err
	}
	old := !at.Written.IsZero() && p.now().Sub(at.Written) > p.timing.DeleteRetention/2 && !p.off.keepOldStore
	if old || at.Next > int64(p.claim) {
		p.log.Warn("local copy discarded", "partition", p.id, "written", at.Written, "next", at.Next, "claim", p.claim)
		if err := p.st.Discard(); err != nil {
			return fmt.Errorf("discard the local copy: %w", err)
		}
		at = storeMark{}
	}
	r := recovery{part: p, judge: Judge{Claim: at.Claim}, at: at, stale: map[string]int64{}}
	if err := p.logs.Read(ctx, p.table.topic, p.id, max(start, at.Next), int64(p.claim), r.take); err != nil {
		return err
	}
	return r.finish(ctx)
}

// recovery reads the changelog into the store.
type recovery struct {
	*part
	judge Judge
	at    storeMark        // what the store may say: never beyond the first stale record
	stale map[string]int64 // keys whose last record is stale
	order []string
	rows  []row
	bytes int
}

const recoveryBatch = 1 << 20

func (r *recovery) take(rec *codecs.Record) error {
	if len(rec.Key) == 0 {
		return nil
	}
	stale, err := r.judge.Stale(rec)
	if err != nil {
		return fmt.Errorf("%w: offset %d of %s: %w", ErrRefused, rec.Offset, rec.Topic, err)
	}
	if r.off.noClaim {
		stale = false
	}
	key := string(rec.Key)
	if stale {
		if _, ok := r.stale[key]; !ok {
			r.order = append(r.order, key)
		}
		r.stale[key] = rec.Offset
		return nil
	}
	delete(r.stale, key)
	if len(r.stale) == 0 || r.off.offsetOverGap {
		r.at = storeMark{Next: rec.Offset + 1, Claim: r.judge.Claim}
	}
	if key == codecs.ClaimKey {
		return nil
	}
	r.rows = append(r.rows, row{key, cloneValue(rec.Value)})
	if r.bytes += len(rec.Value) + len(key); r.bytes < recoveryBatch {
		return nil
	}
	return r.flushRows()
}

func cloneValue(v []byte) []byte {
	if v == nil {
		return nil
	}
	return append(make([]byte, 0, len(v)), v...)
}

func (r *recovery) flushRows() error {
	at := r.at
	at.Written = r.now()
	if err := r.st.Write(r.rows, at); err != nil {
		return fmt.Errorf("write the local copy: %w", err)
	}
	r.m.recovered.Add(float64(len(r.rows)))
	r.rows, r.bytes = r.rows[:0], 0
	return nil
}

// finish writes stale keys again: with their last valid value, or null where there never was one.
func (r *recovery) finish(ctx context.Context) error {
	if err := r.flushRows(); err != nil {
		return err
	}
	var keys []string
	for _, key := range r.order {
		if _, ok := r.stale[key]; ok {
			keys = append(keys, key)
		}
	}
	var rows []row
	if len(keys) > 0 && !r.off.keepStale {
		var err error
		if rows, err = r.newest(keys, nil); err != nil {
			return err
		}
		r.log.Warn("stale records of a former owner written again", "partition", r.id, "rows", len(rows))
		acks, err := r.writeAgain(ctx, rows)
		if err != nil {
			return err
		}
		extra, err := r.repair(ctx, acks, rows)
		if err != nil {
			return err
		}
		rows = append(rows, extra...)
	}
	if err := r.st.Write(rows, r.storeMark()); err != nil {
		return fmt.Errorf("write the local copy: %w", err)
	}
	return nil
}

// startPosition decides where consumption starts: at the position row, whatever the group says.
func (p *part) startPosition(ctx context.Context) error {
	first, err := p.logs.Start(ctx, p.input, p.id)
	if err != nil {
		return err
	}
	end, err := p.logs.End(ctx, p.input, p.id)
	if err != nil {
		return err
	}
	v, err := p.st.Get(codecs.PositionKey)
	if err != nil {
		return err
	}
	at := position{Position: codecs.Position{Topic: p.topicID, Offset: first}, marks: marks{}}
	if v != nil {
		if at, err = parsePosition(v); err != nil {
			return err
		}
		if at, err = p.checkIncarnation(ctx, at, first); err != nil {
			return err
		}
	}
	if at.Offset > end && !p.off.ignoreTopicID {
		return fmt.Errorf("%w: position %d of the table is beyond the end %d of %s (topic id %s): truncated, restored or mirrored; "+
			"`quiesce topics adopt` takes it as a new topic", ErrRefused, at.Offset, end, p.input, p.topicID)
	}
	if at.Offset < first {
		p.m.lost.Add(float64(first - at.Offset))
		p.log.Error("input deleted before it was read", "topic", p.input, "partition", p.id, "from", at.Offset, "to", first)
		at.Offset = first
	}
	p.done, p.next = at, at.Offset
	if v != nil {
		p.written = at.Offset
	} else {
		p.written = -1
	}
	p.marks = marks{}
	for k, m := range at.marks {
		p.marks[k] = m
	}
	return nil
}

// checkIncarnation compares the topic id of the position with the input's. Another id is refused, unless an operator
// has adopted it.
func (p *part) checkIncarnation(ctx context.Context, at position, first int64) (position, error) {
	if at.Topic == p.topicID || p.off.ignoreTopicID {
		return at, nil
	}
	v, err := p.st.Get(codecs.AdoptKey)
	if err != nil {
		return at, err
	}
	adopted, err := parseAdopt(v)
	if err != nil || adopted != p.topicID {
		return at, fmt.Errorf("%w: the table's position is in topic id %s of %s, the topic has id %s now: it was created again; "+
			"`quiesce topics adopt` takes it", ErrRefused, at.Topic, p.input, p.topicID)
	}
	return p.adopt(ctx, at, first)
}
