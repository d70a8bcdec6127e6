package processors

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
)

// valve is a producer that holds back what it is told to.
type valve struct {
	*process
	mu    sync.Mutex
	shut  map[string]bool // topics
	queue map[string][]func()
	sent  []time.Time // of each record, by arrival
	what  []string    // topic of each
}

func (v *valve) Send(topic string, partition int32, key, value []byte, headers []codecs.Header, done func(int64, error)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	send := func() {
		v.w.mu.Lock()
		v.w.now = time.Now()
		v.w.mu.Unlock()
		v.sent, v.what = append(v.sent, time.Now()), append(v.what, topic)
		v.process.Send(topic, partition, key, value, headers, done)
	}
	if v.shut[topic] {
		v.queue[topic] = append(v.queue[topic], send)
		return
	}
	send()
}

func (v *valve) close(topic string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shut[topic] = true
}

func (v *valve) open(topic string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shut[topic] = false
	for _, f := range v.queue[topic] {
		f()
	}
	v.queue[topic] = nil
}

func (v *valve) count(topic string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := 0
	for _, t := range v.what {
		if t == topic {
			n++
		}
	}
	return n
}

// running is a part whose flusher runs, in a synctest bubble.
type running struct {
	*world
	*part
	valve  *valve
	commit []int64
	ended  chan error
	cancel context.CancelFunc
}

func inBubble(t *testing.T, off rules, f func(t *testing.T, r *running)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		v := &valve{process: w.live(), shut: map[string]bool{}, queue: map[string][]func(){}}
		e := w.env(v.process, &tally{}, nil, off)
		e.out, e.now = v, time.Now
		disk := newMemory()
		disk.p = v.process
		p, err := takeOver(t.Context(), e, 0, disk)
		require.NoError(t, err)
		r := &running{world: w, part: p, valve: v, ended: make(chan error, 1)}
		var mu sync.Mutex
		p.mark = func(next int64) {
			mu.Lock()
			defer mu.Unlock()
			r.commit = append(r.commit, next)
		}
		ctx, cancel := context.WithCancel(context.Background())
		r.cancel = cancel
		go func() { r.ended <- p.run(ctx) }()
		defer func() {
			p.stop()
			synctest.Wait()
			cancel()
			if err := <-r.ended; err != nil {
				t.Logf("the part ended with %v", err) // tests look at it where it matters
			}
		}()
		f(t, r)
	})
}

func (r *running) take(t *testing.T, offset int64) {
	t.Helper()
	require.NoError(t, r.part.handle(r.world.log(wInput).recs[offset]))
}

func TestOffsetWaitsForTheOutputs(t *testing.T) {
	rule(t, rules{commitEarly: true}, func(t *testing.T, off rules) (err error) {
		inBubble(t, off, func(t *testing.T, r *running) {
			r.valve.close(wEvents)
			r.take(t, r.world.report("k", 1))
			time.Sleep(time.Second)
			synctest.Wait()
			if len(r.commit) > 0 {
				err = errGhost
			}
			require.Positive(t, r.valve.count(wTable), "the row is written")
			r.valve.open(wEvents)
			synctest.Wait()
			require.Equal(t, int64(1), r.commit[len(r.commit)-1])
		})
		return err
	})
}

func TestOutputsWaitForTheRow(t *testing.T) {
	rule(t, rules{outputsBeforeRow: true}, func(t *testing.T, off rules) (err error) {
		inBubble(t, off, func(t *testing.T, r *running) {
			r.valve.close(wTable)
			r.take(t, r.world.report("k", 1))
			time.Sleep(time.Second)
			synctest.Wait()
			if r.valve.count(wEvents) > 0 {
				err = errGhost
			}
			r.valve.open(wTable)
			synctest.Wait()
			require.Equal(t, 1, r.valve.count(wEvents))
		})
		return err
	})
}

func TestDueOutputCutsAtOnce(t *testing.T) {
	rule(t, rules{lateDue: true}, func(t *testing.T, off rules) (err error) {
		inBubble(t, off, func(t *testing.T, r *running) {
			r.take(t, r.world.report("k", 1))
			synctest.Wait()
			require.Zero(t, r.valve.count(wEvents), "nobody waits for progress")
			start := time.Now()
			r.take(t, r.world.seal("k", 1)) // completes
			synctest.Wait()
			if r.valve.count(wEvents) != 2 {
				err = errGhost
			}
			require.Equal(t, start, time.Now(), "no time has passed")
		})
		return err
	})
}

func TestCutsAreStretchedByBytes(t *testing.T) {
	rule(t, rules{unpaced: true}, func(t *testing.T, off rules) (err error) {
		inBubble(t, off, func(t *testing.T, r *running) {
			r.part.mu.Lock()
			r.part.timing.BytesPerSecond = 1000
			r.part.mu.Unlock()
			start := time.Now()
			r.take(t, r.world.report("k", 1))
			time.Sleep(20 * time.Millisecond)
			synctest.Wait()
			require.Equal(t, 1, r.valve.count(wEvents), "by age")
			r.take(t, r.world.report("k", 2)) // the last cut had some 600 bytes
			time.Sleep(50 * time.Millisecond)
			synctest.Wait()
			if r.valve.count(wEvents) != 1 { // not held back by the byte rate
				err = errGhost
				return
			}
			r.take(t, r.world.seal("k", 2)) // due
			time.Sleep(99 * time.Millisecond)
			synctest.Wait()
			require.Equal(t, 1, r.valve.count(wEvents))
			time.Sleep(time.Millisecond)
			synctest.Wait()
			require.Equal(t, 3, r.valve.count(wEvents), "not longer than 100 ms")
			require.Equal(t, 170*time.Millisecond, time.Since(start))
			for i := range uint32(100) {
				r.take(t, r.world.report(fmt.Sprint("k", i), 1))
			}
			time.Sleep(time.Second)
			synctest.Wait()
			require.Equal(t, 103, r.valve.count(wEvents), "at most a second")
		})
		return err
	})
}

func TestCutFillsWhileAnotherIsInFlight(t *testing.T) {
	inBubble(t, rules{}, func(t *testing.T, r *running) {
		r.valve.close(wTable)
		for i := range uint32(50) {
			r.take(t, r.world.report("k", i))
			time.Sleep(30 * time.Millisecond)
		}
		r.valve.open(wTable)
		time.Sleep(time.Second)
		synctest.Wait()
		rows := 0
		for _, rec := range r.world.records(wTable) {
			if string(rec.Key) == "k" {
				rows++
			}
		}
		require.Equal(t, 2, rows, "one for the first event, one for all that came meanwhile")
		require.Equal(t, []int64{1, 50}, r.commit)
	})
}

func TestIdlePartitionWritesItsPosition(t *testing.T) {
	for verb, wait := range map[string]time.Duration{"": time.Second, "noop": 20 * time.Millisecond} {
		inBubble(t, rules{}, func(t *testing.T, r *running) {
			positions := func() (n int) {
				for _, rec := range r.world.records(wTable) {
					if string(rec.Key) == codecs.PositionKey {
						n++
					}
				}
				return n
			}
			if verb == "" {
				r.take(t, r.world.report("k", 1))
			} else {
				r.take(t, r.world.command("k", verb))
			}
			time.Sleep(20 * time.Millisecond) // the cut; with it the position of the take-over
			synctest.Wait()
			require.Equal(t, 1, positions())
			time.Sleep(wait - time.Millisecond)
			synctest.Wait()
			require.Equal(t, 1, positions())
			time.Sleep(time.Millisecond)
			synctest.Wait()
			require.Equal(t, 2, positions())
			time.Sleep(time.Hour)
			synctest.Wait()
			require.Equal(t, 2, positions(), "written once")
		})
	}
}

func TestFullCutHoldsTheInputBack(t *testing.T) {
	inBubble(t, rules{}, func(t *testing.T, r *running) {
		r.valve.close(wTable)
		r.take(t, r.world.report("k", 1))
		time.Sleep(time.Second) // in flight
		r.part.mu.Lock()
		r.part.open.crowded = true
		r.part.mu.Unlock()
		done := make(chan error, 1)
		rec := r.world.log(wInput).recs[r.world.report("k", 2)]
		go func() { done <- r.part.handle(rec) }()
		synctest.Wait()
		require.Empty(t, done, "blocked")
		r.valve.open(wTable)
		synctest.Wait()
		require.NoError(t, <-done)
	})
}

func TestStopDrains(t *testing.T) {
	inBubble(t, rules{}, func(t *testing.T, r *running) {
		r.take(t, r.world.report("k", 1))
		start := time.Now()
		r.part.stop()
		synctest.Wait()
		require.Equal(t, start, time.Now())
		require.Equal(t, []int64{1}, r.commit)
		require.EqualValues(t, 1, r.part.state().Written, "the position too")
		require.Error(t, r.part.handle(r.world.log(wInput).recs[r.world.report("k", 2)]))
	})
}

func TestSendErrorEndsTheOwnership(t *testing.T) {
	inBubble(t, rules{}, func(t *testing.T, r *running) {
		var failed error
		r.part.onFail = func(err error) { failed = err }
		r.take(t, r.world.report("k", 1))
		r.valve.process.mu.Lock()
		r.valve.process.flaky = 1
		r.valve.process.mu.Unlock()
		time.Sleep(time.Second)
		synctest.Wait()
		require.ErrorIs(t, failed, errBroker)
		require.Empty(t, r.commit)
		require.ErrorIs(t, r.part.handle(r.world.log(wInput).recs[r.world.report("k", 2)]), errBroker)
	})
}

func TestStrangerIsFoundWhenIdle(t *testing.T) {
	inBubble(t, rules{}, func(t *testing.T, r *running) {
		var failed error
		r.part.onFail = func(err error) { failed = err }
		time.Sleep(time.Minute)
		require.NoError(t, failed)
		r.world.append(wTable, []byte(codecs.ClaimKey), claimRecord(0, "other"), nil)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.ErrorIs(t, failed, ErrZombie)
	})
}

func TestDeadlineIsNudgedUntilItIsGone(t *testing.T) {
	inBubble(t, rules{}, func(t *testing.T, r *running) {
		deadline := time.Now().Add(24 * time.Hour)
		r.take(t, r.world.produce(&codecs.Event{Type: codecs.TypeBatchCommand, ID: "d",
			Data: &codecs.BatchCommand{Id: "d", Verb: "deadline", Args: &codecs.CommandArgs{Deadlines: &codecs.Deadlines{SealBy: deadline.UnixMilli()}}}}, "k"))
		nudges := func() int { return int(r.world.end(wInput)) - 1 }
		time.Sleep(24*time.Hour - time.Millisecond)
		synctest.Wait()
		require.Zero(t, nudges())
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Equal(t, 1, nudges())
		time.Sleep(7 * time.Second) // again after 1, 2, 4 s
		synctest.Wait()
		require.Equal(t, 4, nudges())
		time.Sleep(time.Hour)
		synctest.Wait()
		require.InDelta(t, 64, nudges(), 4, "once a minute")

		n := nudges()
		next, err := r.world.own(r.world.live(), newMemory(), &tally{}, nil, rules{}) // the heap is rebuilt from the rows
		require.NoError(t, err)
		require.Equal(t, 1, next.state().Timers)
		next.nudge(time.Now())
		require.Equal(t, n+1, nudges())
		require.NoError(t, r.world.feed(next, 1<<20))
		require.NoError(t, settle(next))
		require.Zero(t, next.state().Timers, "the machine saw the append time of the nudge")
	})
}

func TestCrashPointsComeInOrder(t *testing.T) {
	w := newWorld(1)
	w.report("k", 1)
	p := w.live()
	var points []string
	p.hooks = func(point string) { points = append(points, point) }
	part, err := w.own(p, newMemory(), &tally{}, nil, rules{})
	require.NoError(t, err)
	require.NoError(t, w.feed(part, 1))
	require.NoError(t, flushNow(part))
	require.Equal(t, []string{PointClaimed, PointRecovered, PointClosed, PointRowsSent, PointRowsAcked, PointGapHandled, PointStored,
		PointOutputsSent, PointOutputsDone, PointMarked}, points)
}
