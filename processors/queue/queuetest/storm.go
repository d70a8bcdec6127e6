package queuetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/queue"
)

// Rates of the storm.
const (
	stormLeave = 200 * time.Millisecond // a member joins and another leaves this often
	stormTask  = 10 * time.Millisecond  // how long a task takes
	stormFeed  = 5 * time.Millisecond   // how often stormLoad tasks are added
	stormLoad  = 5
)

// ledger is what the members of a storm did.
type ledger struct {
	mu          sync.Mutex
	added       int
	ended       map[uint32]time.Time // the first end of a task
	again       int                  // ended before, run once more
	oldest      time.Duration        // from an end to another start
	interrupted int
	counts      int // deliveries that were not the first
}

func (l *ledger) complete() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ended) == l.added
}

// storm: members join and leave every 200 ms while tasks arrive and are worked off. Each task ends, nothing is buried. What
// runs again is printed: only a driver knows what it has committed, and judges that by itself.
func storm(t *testing.T, e *Env) {
	lasts := e.Storm
	if lasts == 0 {
		lasts = time.Second
	}
	l := &ledger{ended: map[uint32]time.Time{}}
	all, cancel := context.WithTimeout(t.Context(), lasts+time.Minute)
	defer cancel()
	blowing, calm := context.WithTimeout(all, lasts)
	defer calm()
	var wg sync.WaitGroup
	steady := e.Open(t)
	wg.Go(func() { l.work(all, t, steady) })
	wg.Go(func() { l.feed(blowing, t, e) })
	var members sync.WaitGroup
	every := time.NewTicker(stormLeave)
	defer every.Stop()
	joined := 0
	for ; blowing.Err() == nil; joined++ {
		c := e.Open(t)
		stays, leave := context.WithTimeout(all, 2*stormLeave) // two are there at a time, beside the steady one
		members.Go(func() {
			defer leave()
			l.work(stays, t, c)
			assert.NoError(t, c.Close())
		})
		select {
		case <-every.C:
		case <-blowing.Done():
		}
	}
	members.Wait()
	require.Eventually(t, l.complete, time.Minute, 5*time.Millisecond, "tasks did not end")
	cancel()
	wg.Wait()
	t.Logf("%d members came and went; %d tasks: all ended, %d run again, at most %v after their end, %d interrupted, %d deliveries after an interruption",
		joined, l.added, l.again, l.oldest.Round(time.Millisecond), l.interrupted, l.counts)
}

func (l *ledger) feed(ctx context.Context, t *testing.T, e *Env) {
	every := time.NewTicker(stormFeed)
	defer every.Stop()
	for {
		var ts []*codecs.Task
		l.mu.Lock()
		for range stormLoad {
			ts = append(ts, &codecs.Task{Kind: "sub-job", Batch: "b", Run: "r", Index: uint32(l.added), Attempt: 1})
			l.added++
		}
		l.mu.Unlock()
		assert.NoError(t, e.Producer.Enqueue(context.WithoutCancel(ctx), e.Queue, 0, ts...))
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// work runs deliveries, up to 16 at once, until ctx is done; those under way are interrupted then.
func (l *ledger) work(ctx context.Context, t *testing.T, c queue.Consumer) {
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, 16)
	for {
		slots <- struct{}{}
		ds, err := c.Receive(ctx, 1)
		if err != nil {
			return
		}
		running.Go(func() {
			defer func() { <-slots }()
			l.run(ctx, t, ds[0])
		})
	}
}

func (l *ledger) run(ctx context.Context, t *testing.T, d *queue.Delivery) {
	l.mu.Lock()
	assert.False(t, d.Buried, "nothing crashed")
	if d.Count > 1 {
		l.counts++
	}
	if at, ok := l.ended[d.Task.Index]; ok {
		l.again++
		l.oldest = max(l.oldest, time.Since(at))
	}
	l.mu.Unlock()
	end := time.NewTimer(stormTask)
	defer end.Stop()
	select {
	case <-end.C:
	case <-ctx.Done():
	case <-d.Context().Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if d.Context().Err() != nil || ctx.Err() != nil {
		l.interrupted++
		d.Release()
		return
	}
	if _, ok := l.ended[d.Task.Index]; !ok {
		l.ended[d.Task.Index] = time.Now()
	}
	d.Done()
}
