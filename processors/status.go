package processors

import (
	"context"
	"fmt"

	"github.com/quiesce/quiesce/codecs"
)

// The status topic is compacted and co-partitioned with the table. Its records carry the claim like rows do: value =
// codecs.AppendRow(header, the event's bytes), null records have HeaderClaim. Its owner is its only writer.

func (p *part) sendStatus(b *burst, o *output) {
	headers, value := o.headers, []byte(nil)
	if o.value == nil {
		headers = append(claimHeader(p.claim), o.headers...)
	} else {
		value = codecs.AppendRow(nil, codecs.RowHeader{Format: codecs.RowFormat, Claim: p.claim, Applied: o.source}, o.value, nil)
	}
	b.send(p.out, p.status.topic, p.id, o.key, value, headers)
}

// repeater writes the claim and the status of every open row to the status topic: followers that took a record of a
// former owner for the last word are corrected.
type repeater struct {
	*part
	b     *burst
	count int  // in b
	first bool // the claim is in b
}

// repeatBurst bounds the records that wait for their acks.
const repeatBurst = 1000

func (p *part) repeater() *repeater {
	r := &repeater{part: p, b: newBurst(repeatBurst, false), first: true}
	if p.repeats() {
		r.b.send(p.out, p.status.topic, p.id, []byte(codecs.ClaimKey), claimRecord(p.claim, p.owner), nil)
	}
	return r
}

func (p *part) repeats() bool { return p.hasStatus && !p.off.noStatusRepeat }

func (r *repeater) repeat(ctx context.Context, o *output) error {
	if !r.repeats() {
		return nil
	}
	r.sendStatus(r.b, o)
	if r.count++; r.count < repeatBurst {
		return nil
	}
	return r.flush(ctx)
}

// flush waits for the acks.
func (r *repeater) flush(ctx context.Context) error {
	if !r.repeats() {
		return nil
	}
	acks, err := r.b.wait(ctx)
	if err != nil {
		return fmt.Errorf("repeat status: %w", err)
	}
	if r.first {
		r.status.next = acks[0]
	}
	r.b, r.count, r.first = newBurst(repeatBurst, false), 0, false
	return r.repairStatus(ctx, acks)
}

// repairStatus handles the gaps between acks of the status topic: the keys that a stranger wrote get their status again.
func (p *part) repairStatus(ctx context.Context, acks []int64) error {
	gaps, err := p.status.follow(acks)
	if err != nil || len(gaps) == 0 || p.off.ignoreGap || p.off.ignoreStatusGap {
		return err
	}
	return p.repairStatusGaps(ctx, gaps)
}

func (p *part) repairStatusGaps(ctx context.Context, gaps []gap) error {
	keys, err := p.readGaps(ctx, p.status.topic, gaps)
	if err != nil || len(keys) == 0 {
		return err
	}
	b := newBurst(len(keys), false)
	for _, key := range keys {
		o, err := p.storedStatus(key)
		if err != nil {
			return err
		}
		p.sendStatus(b, o)
	}
	acks, err := b.wait(ctx)
	if err != nil {
		return fmt.Errorf("repeat status: %w", err)
	}
	return p.repairStatus(ctx, acks)
}

// storedStatus is the status of the durable row of a key; a null record when there is none.
func (p *part) storedStatus(key string) (*output, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, err := p.read(key, false)
	if err != nil {
		return nil, err
	}
	if o := p.statusOf(e); o != nil {
		return o, nil
	}
	return &output{source: max(e.Applied, 0), topic: codecs.TopicStatus, key: []byte(key)}, nil
}

// statusOf returns the status record of a row, nil when it has none.
func (p *part) statusOf(e *entry) *output {
	if e.row == nil || e.Part {
		return nil
	}
	m, ok := p.machine.Status(e.row, e.Quarantined())
	if !ok {
		return nil
	}
	id := fmt.Sprintf("%s/%s/%d/%d/status", p.group, p.topicID, p.id, e.Applied)
	rec, err := codecs.Encode(m.Topic, m.Key, p.source, &codecs.Event{Type: m.Type, ID: id, Traceparent: m.Trace, Data: m.Data})
	if err != nil {
		p.log.Error("status does not encode", "partition", p.id, "key", e.key, "error", err)
		return nil
	}
	return &output{source: max(e.Applied, 0), topic: codecs.TopicStatus, toPart: -1, key: rec.Key, headers: rec.Headers, value: rec.Value}
}
