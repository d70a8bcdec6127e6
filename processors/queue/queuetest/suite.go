package queuetest

import (
	"context"
	"fmt"
	"sort"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/queue"
)

// Env is a broker with one empty queue.
type Env struct {
	Queue    string
	Producer queue.Producer
	Open     func(t *testing.T) queue.Consumer // a further consumer of the queue
	Crash    func(c queue.Consumer)            // ends one as kill -9 would
	Settle   func(c queue.Consumer)            // waits until what was done there is durable
	Delay    time.Duration                     // the shortest delay of the queue
	Storm    time.Duration                     // how long members come and go; default 1 s
}

// Run runs the suite; setup makes a fresh environment per test.
func Run(t *testing.T, setup func(t *testing.T) *Env) {
	for name, test := range map[string]func(*testing.T, *Env){
		"every task is delivered":                  everyTask,
		"C47 done tasks are not delivered again":   doneNotAgain,
		"a released delivery does not count":       releaseDoesNotCount,
		"a crash counts, suspects run alone":       suspectsAlone,
		"a task that kills its consumer is buried": buried,
		"a delayed task comes later":               delayed,
		"higher priority goes first":               priority,
		"closing ends contexts and receivers":      closing,
		"members come and go":                      storm,
	} {
		t.Run(name, func(t *testing.T) { test(t, setup(t)) })
	}
}

func tasks(n int) []*codecs.Task {
	out := make([]*codecs.Task, n)
	for i := range out {
		out[i] = &codecs.Task{Kind: "sub-job", Batch: "b", Run: "r", Index: uint32(i), Id: fmt.Sprint("t", i), Attempt: 1}
	}
	return out
}

func (e *Env) enqueue(t *testing.T, delay time.Duration, ts ...*codecs.Task) {
	t.Helper()
	require.NoError(t, e.Producer.Enqueue(t.Context(), e.Queue, delay, ts...))
}

// receive takes exactly n deliveries.
func receive(t *testing.T, c queue.Consumer, n int) []*queue.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var out []*queue.Delivery
	for len(out) < n {
		ds, err := c.Receive(ctx, n-len(out))
		require.NoError(t, err, "after %d of %d deliveries", len(out), n)
		out = append(out, ds...)
	}
	return out
}

func indexes(ds []*queue.Delivery) []int {
	var out []int
	for _, d := range ds {
		out = append(out, int(d.Task.Index))
	}
	sort.Ints(out)
	return out
}

func everyTask(t *testing.T, e *Env) {
	const n = 1000
	e.enqueue(t, 0, tasks(n)...)
	seen := map[uint32]int{}
	var mu sync.Mutex
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for range 3 {
		c := e.Open(t)
		wg.Go(func() {
			for {
				ds, err := c.Receive(ctx, 20)
				if err != nil {
					return
				}
				mu.Lock()
				for _, d := range ds {
					seen[d.Task.Index]++
					d.Done()
					d.Done()    // twice is once
					d.Release() // too late
				}
				if len(seen) == n {
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, seen, n)
}

// doneNotAgain is the case of offsets 1, 2, 3, 5, 6, 7 done and 4 open when the owner dies.
func doneNotAgain(t *testing.T, e *Env) {
	c := e.Open(t)
	e.enqueue(t, 0, tasks(8)...)
	for _, d := range receive(t, c, 8) {
		if i := d.Task.Index; i != 0 && i != 4 {
			d.Done()
		}
	}
	e.Settle(c)
	e.Crash(c)
	c = e.Open(t)
	again := receive(t, c, 2)
	require.Equal(t, []int{0, 4}, indexes(again))
	for _, d := range again {
		require.Equal(t, 2, d.Count)
		d.Done()
	}
	e.enqueue(t, 0, &codecs.Task{Kind: "sub-job", Batch: "b", Index: 99, Id: "end"})
	require.Equal(t, []int{99}, indexes(receive(t, c, 1)), "nothing else was left")
}

func releaseDoesNotCount(t *testing.T, e *Env) {
	c := e.Open(t)
	e.enqueue(t, 0, tasks(1)...)
	for range 10 {
		d := receive(t, c, 1)[0]
		require.Equal(t, 1, d.Count)
		require.False(t, d.Buried)
		d.Release()
	}
}

// suspectsAlone: after two crashes every task that was out is handed out alone.
func suspectsAlone(t *testing.T, e *Env) {
	e.enqueue(t, 0, tasks(6)...)
	for range 2 {
		c := e.Open(t)
		receive(t, c, 6)
		e.Crash(c)
	}
	c := e.Open(t)
	for left := 6; left > 0; left-- {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		ds, err := c.Receive(ctx, 10)
		cancel()
		require.NoError(t, err)
		require.Len(t, ds, 1)
		require.Equal(t, 3, ds[0].Count)
		quiet(t, c)
		ds[0].Done()
	}
	e.enqueue(t, 0, tasks(4)...)
	receive(t, c, 4) // and nobody is alone any more
}

// quiet checks that the consumer hands out nothing now.
func quiet(t *testing.T, c queue.Consumer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	ds, err := c.Receive(ctx, 1)
	require.ErrorIs(t, err, context.DeadlineExceeded, "%v", ds)
}

func buried(t *testing.T, e *Env) {
	e.enqueue(t, 0, tasks(1)...)
	for n := 1; n <= queue.DefaultMaxDeliveries; n++ {
		c := e.Open(t)
		d := receive(t, c, 1)[0]
		require.Equal(t, n, d.Count)
		require.False(t, d.Buried)
		e.Crash(c)
	}
	d := receive(t, e.Open(t), 1)[0]
	require.True(t, d.Buried)
	d.Done()
}

func delayed(t *testing.T, e *Env) {
	c := e.Open(t)
	start := time.Now()
	e.enqueue(t, e.Delay, tasks(1)...)
	e.enqueue(t, 0, &codecs.Task{Kind: "sub-job", Batch: "b", Index: 9, Id: "now"})
	ds := receive(t, c, 2)
	require.Equal(t, uint32(9), ds[0].Task.Index)
	require.GreaterOrEqual(t, time.Since(start), e.Delay-5*time.Millisecond)
}

func priority(t *testing.T, e *Env) {
	ts := tasks(40)
	for _, task := range ts {
		task.Priority = task.Index % 4
	}
	e.enqueue(t, 0, ts...)
	c := e.Open(t)
	first := receive(t, c, 1) // the others are fetched by then, or soon
	require.Eventually(t, func() bool { return e.backlog(c) >= 39 }, 10*time.Second, time.Millisecond)
	last := uint32(3)
	for _, d := range receive(t, c, 39) {
		require.LessOrEqual(t, d.Task.Priority, last)
		last = d.Task.Priority
	}
	first[0].Done()
}

// Backlogged is implemented by consumers that can say how much they have fetched ahead.
type Backlogged interface{ Backlog() int }

func (e *Env) backlog(c queue.Consumer) int { return c.(Backlogged).Backlog() }

func closing(t *testing.T, e *Env) {
	c := e.Open(t)
	e.enqueue(t, 0, tasks(1)...)
	d := receive(t, c, 1)[0]
	failed := make(chan error, 1)
	go func() {
		_, err := c.Receive(context.Background(), 1)
		failed <- err
	}()
	go func() {
		<-d.Context().Done()
		d.Release()
	}()
	require.NoError(t, c.Close())
	require.ErrorIs(t, <-failed, queue.ErrClosed)
	require.Equal(t, 1, receive(t, e.Open(t), 1)[0].Count)
}
