package processors

import (
	"context"
	"fmt"
	"time"

	"github.com/quiesce/quiesce/codecs"
)

// lane is a partition of which this ownership is the only writer: the offsets of its acks are contiguous, a gap means a
// stranger.
type lane struct {
	topic string
	next  int64 // offset of the next ack; -1 = not known yet
}

type gap struct{ from, to int64 }

// follow takes acks in send order and returns the gaps before them.
func (l *lane) follow(acks []int64) ([]gap, error) {
	var gaps []gap
	for _, o := range acks {
		switch {
		case l.next < 0:
		case o < l.next:
			return nil, fmt.Errorf("%s: acknowledged at offset %d, expected %d or more", l.topic, o, l.next)
		case o > l.next:
			gaps = append(gaps, gap{l.next, o})
		}
		l.next = o + 1
	}
	return gaps, nil
}

// repair reads the gaps that the acks of a cut reveal. A newer claim in one ends this ownership; the keys of stale
// records are written again, with the newest acknowledged value, until there is no gap. It returns the rows so written.
func (p *part) repair(ctx context.Context, acks []int64, cut []row) (extra []row, err error) {
	for {
		gaps, err := p.table.follow(acks)
		if err != nil || len(gaps) == 0 || p.off.ignoreGap {
			return extra, err
		}
		stale, err := p.readGaps(ctx, p.table.topic, gaps)
		if err != nil || len(stale) == 0 {
			return extra, err
		}
		rows, err := p.newest(stale, cut)
		if err != nil {
			return nil, err
		}
		if acks, err = p.writeAgain(ctx, rows); err != nil {
			return nil, err
		}
		extra = append(extra, rows...)
	}
}

// readGaps returns the keys of the stale records in gaps, in log order.
func (p *part) readGaps(ctx context.Context, topic string, gaps []gap) (stale []string, err error) {
	for _, g := range gaps {
		p.m.gaps.Inc()
		p.log.Warn("records of a stranger", "topic", topic, "partition", p.id, "from", g.from, "to", g.to)
		seen := int64(0)
		if p.off.noClaim {
			continue
		}
		err := p.logs.Read(ctx, topic, p.id, g.from, g.to, func(rec *codecs.Record) error {
			seen++
			if topic == p.table.topic && string(rec.Key) == codecs.AdoptKey {
				return errAdopted
			}
			claim, err := claimOf(rec)
			if string(rec.Key) == codecs.ClaimKey {
				claim, err = claimNumber(rec), nil
			}
			if err == nil && claim > p.claim {
				return fmt.Errorf("%w: %s/%d, claim %d, own claim %d", ErrZombie, topic, p.id, claim, p.claim)
			}
			if len(rec.Key) > 0 && string(rec.Key) != codecs.ClaimKey {
				stale = append(stale, string(rec.Key))
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("gap [%d, %d): %w", g.from, g.to, err)
		}
		if seen < g.to-g.from && !p.off.compactedGapOK {
			return nil, fmt.Errorf("gap [%d, %d) of %s/%d: %w", g.from, g.to, topic, p.id, errCompacted)
		}
	}
	return stale, nil
}

// newest returns, for each key once, the newest acknowledged value under this claim: of the cut, else of the store.
func (p *part) newest(keys []string, cut []row) ([]row, error) {
	inCut := map[string][]byte{}
	for _, r := range cut {
		inCut[r.key] = r.value
	}
	var rows []row
	seen := map[string]bool{}
	for _, key := range keys {
		if seen[key] {
			continue
		}
		seen[key] = true
		v, ok := inCut[key]
		if !ok {
			old, err := p.st.Get(key)
			if err != nil {
				return nil, fmt.Errorf("read row %q of the local copy: %w", key, err)
			}
			if old != nil {
				v = restamp(old, p.claim)
			}
		}
		rows = append(rows, row{key, v})
	}
	return rows, nil
}

func (p *part) writeAgain(ctx context.Context, rows []row) ([]int64, error) {
	p.m.rewritten.Add(float64(len(rows)))
	b := newBurst(len(rows), false)
	for _, r := range rows {
		b.send(p.out, p.table.topic, p.id, []byte(r.key), r.value, p.headersOf(r))
	}
	acks, err := b.wait(ctx)
	if err != nil {
		return nil, fmt.Errorf("write stale rows again: %w", err)
	}
	return acks, nil
}

// lookForStrangers compares the ends of the single-writer logs with the own last acks. run calls it once per Timing.Idle.
func (p *part) lookForStrangers(ctx context.Context) error {
	p.looked = time.Now()
	if p.off.ignoreGap {
		return nil
	}
	end, err := p.logs.End(ctx, p.table.topic, p.id)
	if err != nil {
		p.log.Warn("cannot look for strangers", "partition", p.id, "error", err)
		return nil // an answer will come with the next ack
	}
	if end > p.table.next {
		extra, err := p.repairTo(ctx, end)
		if err != nil {
			return err
		}
		if err := p.st.Write(extra, p.storeMark()); err != nil {
			return fmt.Errorf("write the local copy: %w", err)
		}
	}
	if !p.hasStatus || p.status.next < 0 || p.off.ignoreStatusGap {
		return nil
	}
	if end, err = p.logs.End(ctx, p.status.topic, p.id); err == nil && end > p.status.next {
		g := gap{p.status.next, end}
		p.status.next = end
		return p.repairStatusGaps(ctx, []gap{g})
	}
	return nil
}

// repairTo handles a gap that reaches to the end of the changelog.
func (p *part) repairTo(ctx context.Context, end int64) ([]row, error) {
	stale, err := p.readGaps(ctx, p.table.topic, []gap{{p.table.next, end}})
	if err != nil {
		return nil, err
	}
	p.table.next = end
	if len(stale) == 0 {
		return nil, nil
	}
	rows, err := p.newest(stale, nil)
	if err != nil {
		return nil, err
	}
	acks, err := p.writeAgain(ctx, rows)
	if err != nil {
		return nil, err
	}
	extra, err := p.repair(ctx, acks, nil)
	return append(rows, extra...), err
}
