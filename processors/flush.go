package processors

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quiesce/quiesce/codecs"
)

// flush makes a closed cut durable, visible and committable, in that order:
//
//	rows sent -> acked -> gap handled -> local copy -> outputs sent in input order -> acked -> offset marked
func (p *part) flush(ctx context.Context, c *cut) error {
	p.hook(PointClosed, p.id)
	if p.off.outputsBeforeRow {
		if err := p.sendOutputs(ctx, c); err != nil {
			return err
		}
	}
	if err := p.sendRows(ctx, c); err != nil {
		return err
	}
	if !p.off.outputsBeforeRow && !p.off.outputsBeforeGap {
		if err := p.sendOutputs(ctx, c); err != nil {
			return err
		}
	}
	p.finish(c)
	p.hook(PointMarked, p.id)
	return nil
}

// sendRows writes the cut's rows to the changelog and the local copy.
func (p *part) sendRows(ctx context.Context, c *cut) error {
	b := newBurst(len(c.rows), p.off.ignoreSendErrors)
	for _, r := range c.rows {
		b.send(p.out, p.table.topic, p.id, []byte(r.key), r.value, p.headersOf(r))
	}
	p.hook(PointRowsSent, p.id)
	if p.off.commitUnacked {
		p.mark(c.last + 1)
	}
	acks, err := b.wait(ctx)
	if err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	p.m.rows.Add(float64(len(c.rows)))
	p.m.rowBytes.Add(float64(c.size))
	p.hook(PointRowsAcked, p.id)
	if p.off.outputsBeforeGap {
		if err := p.sendOutputs(ctx, c); err != nil {
			return err
		}
	}
	extra, err := p.repair(ctx, acks, c.rows)
	if err != nil {
		return err
	}
	p.hook(PointGapHandled, p.id)
	if err := p.st.Write(append(c.rows, extra...), p.storeMark()); err != nil {
		return fmt.Errorf("write the local copy: %w", err)
	}
	p.hook(PointStored, p.id)
	p.landed(c)
	return nil
}

func (p *part) storeMark() storeMark {
	return storeMark{Next: p.table.next, Claim: p.claim, Written: p.now()}
}

// landed is called when the store has the cut's rows.
func (p *part) landed(c *cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range c.entries {
		e.flying--
		e.stored = true
	}
	for _, e := range c.gone {
		e.flying--
		e.stored = e.stored && e.inCut != nil
	}
	if c.to != nil {
		p.written = c.to.Offset
	}
}

// sendOutputs sends what the cut decided, in the order of the inputs, and waits for all acks.
func (p *part) sendOutputs(ctx context.Context, c *cut) error {
	if len(c.outputs) == 0 {
		return nil
	}
	outputs := c.outputs
	if p.off.rowByRow {
		outputs = slices.Clone(outputs)
		slices.SortStableFunc(outputs, func(a, b *output) int { return slices.Compare(a.key, b.key) })
	}
	b := newBurst(len(outputs), p.off.ignoreSendErrors)
	status := newBurst(0, p.off.ignoreSendErrors)
	for _, o := range outputs {
		if o.topic == codecs.TopicStatus {
			p.sendStatus(status, o)
			continue
		}
		b.send(p.out, codecs.Topic(p.prefix, o.topic), o.toPart, o.key, o.value, o.headers)
	}
	p.hook(PointOutputsSent, p.id)
	if p.off.commitEarly {
		p.mark(c.last + 1)
	}
	if _, err := b.wait(ctx); err != nil {
		return fmt.Errorf("send outputs: %w", err)
	}
	acks, err := status.wait(ctx)
	if err != nil {
		return fmt.Errorf("send status: %w", err)
	}
	if err := p.repairStatus(ctx, acks); err != nil {
		return err
	}
	p.m.outputs.Add(float64(len(outputs)))
	p.hook(PointOutputsDone, p.id)
	return nil
}

// finish is called when all that the cut decided is visible: its offset may be committed.
func (p *part) finish(c *cut) {
	p.mu.Lock()
	for _, e := range c.entries {
		p.consider(e)
	}
	if c.after.Offset > p.done.Offset {
		p.command = c.command
		p.moved = time.Now()
	}
	p.done = c.after
	for _, e := range c.entries {
		e.acked(p.done.Offset)
	}
	p.doneAt = time.Now()
	p.mu.Unlock()
	if c.inputs > 0 {
		p.m.cuts.Inc()
		p.m.inputs.Add(float64(c.inputs))
		p.mark(c.after.Offset)
	}
}

// burst is a number of records that are sent together and waited for.
type burst struct {
	mu      sync.Mutex
	offsets []int64 // by send order; -1 = not acked
	open    int
	err     error
	sent    bool
	done    chan struct{}
	blind   bool // mutant: errors count as acks
}

func newBurst(n int, blind bool) *burst {
	return &burst{offsets: make([]int64, 0, n), done: make(chan struct{}), blind: blind}
}

func (b *burst) send(to producer, topic string, partition int32, key, value []byte, headers []codecs.Header) {
	b.mu.Lock()
	i := len(b.offsets)
	b.offsets = append(b.offsets, -1)
	b.open++
	failed := b.err != nil && !b.blind
	b.mu.Unlock()
	if failed { // the order is broken: nothing more may go out
		b.ack(i, -1, nil)
		return
	}
	to.Send(topic, partition, key, value, headers, func(offset int64, err error) {
		if err != nil {
			err = fmt.Errorf("%s: %w", topic, err)
		}
		b.ack(i, offset, err)
	})
}

func (b *burst) ack(i int, offset int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.offsets[i] = offset
	if err != nil && b.err == nil {
		b.err = err
	}
	b.open--
	b.closeIfDone()
}

func (b *burst) closeIfDone() {
	if b.sent && b.open == 0 {
		close(b.done)
	}
}

// wait returns the offsets in send order when all records are acknowledged.
func (b *burst) wait(ctx context.Context) ([]int64, error) {
	b.mu.Lock()
	b.sent = true
	b.closeIfDone()
	b.mu.Unlock()
	select {
	case <-b.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if b.blind {
		return b.offsets, nil
	}
	return b.offsets, b.err
}
