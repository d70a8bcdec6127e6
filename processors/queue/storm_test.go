package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/processors/queue"
	"github.com/quiesce/quiesce/processors/worker"
	"github.com/quiesce/quiesce/topology"
)

// Whole workers come and go every 200 ms for 30 s (5 s in the short form), every other one as if killed: each task has its
// outcome, no outcome is ever another one, and what runs again was under way or had ended after the last acknowledged
// commit. How long before is printed.
func TestWorkersComeAndGo(t *testing.T) {
	const every, lives, perTick = 200 * time.Millisecond, 400 * time.Millisecond, 200
	k := setup(t, 8, 50*time.Millisecond)
	s := &storm{kit: k, snapshot: map[int32]func(int64) bool{}, ended: map[string]stormEnd{}}
	watching, stop := context.WithCancel(t.Context())
	var watcher, members sync.WaitGroup
	watcher.Go(func() { s.watch(watching, t) })
	steady, end := context.WithCancel(t.Context())
	members.Go(func() { s.work(steady, t, &stormMember{steady: true}) })

	added, joined := 0, 0
	for start := time.Now(); time.Since(start) < stormFor(); joined++ {
		members.Go(func() { // two are there at a time, beside the steady one
			stays, leave := context.WithTimeout(t.Context(), lives)
			defer leave()
			s.work(stays, t, &stormMember{killed: joined%2 == 1})
		})
		for next := time.After(every); next != nil; {
			var tasks []*codecs.Task
			for range perTick / 10 {
				tasks = append(tasks, &codecs.Task{Kind: "sub-job", Batch: "b", Run: "r", Index: uint32(added), Attempt: 1,
					Retry: &codecs.Retry{Attempts: 2, First: 50}})
				added++
			}
			require.NoError(t, k.producer().Enqueue(t.Context(), "q", 0, tasks...))
			select {
			case <-next:
				next = nil
			case <-time.After(every / 10):
			}
		}
	}
	reported := outcomes(t, k, added)
	require.Eventually(t, func() bool { return k.lag(t) == 0 }, patience, 20*time.Millisecond, "nothing is left")
	end()
	members.Wait()
	stop()
	watcher.Wait()
	records := s.judge(t)
	t.Logf("%d workers came and went; %d tasks in %d records: %d starts on workers that came and went, %d interrupted, %d run to the end "+
		"once more, ended at most %v before their worker went away; %d outcomes told again", joined, added, records, s.visitors, s.interrupted, s.again,
		s.latest.Round(time.Millisecond), reported-added)
	require.Positive(t, s.visitors, "who came worked")
	// How long ago that was is printed, not judged: while a group rebalances, brokers refuse commits, and a loaded machine
	// stands still. judge compares with what was committed.
}

// stormOutcome is what becomes of a task.
func stormOutcome(index uint32) codecs.Outcome_Code {
	switch index % 20 {
	case 7:
		return codecs.Failed
	case 3:
		return codecs.Skipped
	}
	return codecs.OK
}

// storm is what was seen of it.
type storm struct {
	*kit
	mu          sync.Mutex
	snapshot    map[int32]func(int64) bool // what was committed as done, by partition; replaced, not changed
	runs        []stormRun
	visitors    int                 // of them on workers that came and went
	ended       map[string]stormEnd // attempts, when a handler first returned
	again       int
	latest      time.Duration // from an end that was repeated to when its worker went away
	interrupted int
}

// stormMember is a worker.
type stormMember struct {
	steady, killed bool
	gone           time.Time // when it stopped; zero = it has not
}

type stormEnd struct {
	at time.Time
	on *stormMember
}

// stormRun is one start of a handler: of which task, and what had been committed before.
type stormRun struct {
	task      string
	committed map[int32]func(int64) bool
}

func stormKey(t *codecs.Task) string { return fmt.Sprintf("%d attempt %d", t.Index, t.Attempt) }

func (s *storm) starts(task *codecs.Task, m *stormMember) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := stormKey(task)
	s.runs = append(s.runs, stormRun{key, s.snapshot})
	if !m.steady {
		s.visitors++
	}
	if e, ok := s.ended[key]; ok && task.Attempt == 1 { // a second attempt may stand in the queue twice
		gone := e.on.gone
		if gone.IsZero() {
			gone = time.Now()
		}
		s.latest = max(s.latest, gone.Sub(e.at))
	}
}

func (s *storm) ends(task *codecs.Task, m *stormMember, interrupted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := stormKey(task)
	switch _, again := s.ended[key]; {
	case interrupted:
		s.interrupted++
	case again:
		s.again++
	default:
		s.ended[key] = stormEnd{time.Now(), m}
	}
}

// work runs a worker until ctx is done. If killed, it commits nothing more then.
func (s *storm) work(ctx context.Context, t *testing.T, m *stormMember) {
	c, err := queue.Open(t.Context(), s.config())
	if err != nil {
		t.Errorf("queue: %v", err)
		return
	}
	left := make(chan struct{})
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		m.gone = time.Now()
		s.mu.Unlock()
		if m.killed {
			queue.Crash(c)
		}
		close(left)
	})
	movers, stop := context.WithCancel(t.Context())
	var mover sync.WaitGroup
	retry, err := queue.OpenRetry(s.config())
	if err != nil {
		t.Errorf("retries: %v", err)
	} else {
		mover.Go(func() { _ = retry.Run(movers) })
	}
	cfg := worker.Config{Prefix: s.prefix, Queue: "q", Retries: s.queue.Retries, Log: s.log, Concurrency: 64, DrainTimeout: 100 * time.Millisecond,
		Handler: func(ctx context.Context, task *worker.Task) (worker.Result, error) {
			s.starts(task, m)
			select {
			case <-time.After(40 * time.Millisecond):
			case <-ctx.Done():
				s.ends(task, m, true)
				return worker.Result{}, ctx.Err()
			}
			s.ends(task, m, false)
			switch o := stormOutcome(task.Index); {
			case task.Index%20 == 11 && task.Attempt == 1:
				return worker.Result{}, errors.New("once more")
			case o == codecs.Failed:
				return worker.Result{}, worker.Fail(errors.New("broken"))
			case o == codecs.Skipped:
				return worker.Result{}, worker.Skip("not this one")
			}
			return worker.Result{}, nil
		}}
	reporter := worker.NewReporter(s.client, cfg)
	if err := worker.Work(ctx, cfg, c, s.producer(), reporter); err != nil {
		t.Errorf("worker: %v", err)
	}
	stop()
	mover.Wait()
	reporter.Close()
	if <-left; !m.killed {
		if err := c.Close(); err != nil {
			t.Logf("a worker leaves: %v", err)
		}
	}
}

// watch keeps the snapshot of the group's commits.
func (s *storm) watch(ctx context.Context, t *testing.T) {
	topic := topology.WorkTopic(s.prefix, "q")
	topics, err := s.admin.ListTopics(ctx, topic)
	if err != nil {
		t.Error(err)
		return
	}
	for ctx.Err() == nil {
		offsets, err := s.admin.FetchOffsets(ctx, topic)
		if err != nil { // its coordinator is being found
			continue
		}
		now := map[int32]func(int64) bool{}
		offsets.Each(func(o kadm.OffsetResponse) {
			done, err := queue.Committed(o.At, topics[topic].ID, o.Metadata)
			if err != nil {
				t.Errorf("commit of partition %d: %v", o.Partition, err)
			}
			now[o.Partition] = done
		})
		s.mu.Lock()
		s.snapshot = now
		s.mu.Unlock()
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// judge checks every start against what was committed before it, and returns the number of records of the queue.
func (s *storm) judge(t *testing.T) int {
	records := map[string][]*kgo.Record{}
	topic := topology.WorkTopic(s.prefix, "q")
	ends, err := s.admin.ListEndOffsets(t.Context(), topic)
	require.NoError(t, err)
	left := 0
	ends.Each(func(o kadm.ListedOffset) { left += int(o.Offset) })
	n, read := left, readTasks(t, s.kit, topic)
	for ; left > 0; left-- {
		rec := <-read
		task := decode(t, rec).Data.(*codecs.Task)
		records[stormKey(task)] = append(records[stormKey(task)], rec)
	}
	for _, run := range s.runs {
		open := len(run.committed) == 0
		for _, rec := range records[run.task] {
			done := run.committed[rec.Partition]
			open = open || done == nil || !done(rec.Offset)
		}
		require.True(t, open, "task %s ran although its end was committed", run.task)
	}
	return n
}

// outcomes reads reports until n tasks have one, and returns how many tasks were reported; each outcome is the right one.
func outcomes(t *testing.T, k *kit, n int) (reported int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cl := brokertest.Client(t, k.bootstrap[0], kgo.ConsumeTopics(codecs.Topic(k.prefix, codecs.TopicControl)),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	got := map[uint32]bool{}
	for len(got) < n {
		fetches := cl.PollFetches(ctx)
		require.NoError(t, ctx.Err(), "%d of %d tasks have an outcome", len(got), n)
		fetches.EachRecord(func(r *kgo.Record) {
			for _, it := range decode(t, r).Data.(*codecs.BatchReport).Items {
				require.NoError(t, codecs.ForEachRange(it, func(first, last uint32) {
					for i := first; i <= last; i++ {
						require.Equal(t, stormOutcome(i), it.Outcome, "task %d: %s", i, it.Reason)
						got[i] = true
						reported++
					}
				}))
			}
		})
	}
	return reported
}

func decode(t *testing.T, r *kgo.Record) *codecs.Event {
	t.Helper()
	rec := codecs.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		rec.Headers = append(rec.Headers, codecs.Header{Key: h.Key, Value: h.Value})
	}
	ev := &codecs.Event{}
	require.NoError(t, codecs.Decode(&rec, ev))
	return ev
}
