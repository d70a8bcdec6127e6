package feeder

import (
	"context"
	"sync"
)

// acks follows which records are acked: they come back in the order of each partition, not of the input.
type acks struct {
	mu     sync.Mutex
	first  uint32 // index of open[0]; everything below is acked
	open   []ack
	digest digest // over the records below first
	err    error
	idle   *sync.Cond
}

type ack struct {
	digest digest // over the records up to and including this one
	done   bool
}

func newAcks(first uint32, d digest) *acks {
	a := &acks{first: first, digest: d}
	a.idle = sync.NewCond(&a.mu)
	return a
}

// sent notes that the record of the next index goes out.
func (a *acks) sent(d digest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = append(a.open, ack{digest: d})
}

// acked notes an answer.
func (a *acks) acked(index uint32, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		if a.err == nil {
			a.err = err
		}
		a.idle.Broadcast()
		return
	}
	a.open[index-a.first].done = true
	n := 0
	for n < len(a.open) && a.open[n].done {
		a.digest = a.open[n].digest
		n++
	}
	if a.open = a.open[n:]; n > 0 {
		a.first += uint32(n)
		if len(a.open) == 0 {
			a.idle.Broadcast()
		}
	}
}

// prefix is the number of records that are acked without a gap, their digest, and the first failure.
func (a *acks) prefix() (uint32, digest, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.first, a.digest, a.err
}

// wait returns when all records that were sent are acked, one has failed, or ctx is done.
func (a *acks) wait(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.idle.Broadcast()
	})()
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.open) > 0 && a.err == nil && ctx.Err() == nil {
		a.idle.Wait()
	}
	if a.err == nil && len(a.open) > 0 {
		return context.Cause(ctx)
	}
	return a.err
}
