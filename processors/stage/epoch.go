package stage

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// epoch is the set of records that were produced between two cuts of a unit.
type epoch struct {
	sent sync.WaitGroup
	err  atomic.Pointer[error]
	done func(*kgo.Record, error) // promise, made once
}

func newEpoch() *epoch {
	e := &epoch{}
	e.done = e.promise
	return e
}

// add counts a record that is about to be produced. Not called any more once wait is.
func (e *epoch) add() { e.sent.Add(1) }

// promise is the producer's callback.
func (e *epoch) promise(_ *kgo.Record, err error) {
	if err != nil {
		e.err.CompareAndSwap(nil, &err)
	}
	e.sent.Done()
}

// wait returns when every record is acked or has failed, with the first failure.
func (e *epoch) wait() error {
	e.sent.Wait()
	if err := e.err.Load(); err != nil {
		return *err
	}
	return nil
}

// produceAll sends records and waits for their acks.
func produceAll(ctx context.Context, client *kgo.Client, recs []*kgo.Record) error {
	e := newEpoch()
	for _, r := range recs {
		e.add()
		client.Produce(ctx, r, e.done)
	}
	return e.wait()
}
