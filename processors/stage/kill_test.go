package stage_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/processors/stage"
)

var errKilled = errors.New("killed by the test")

// killer kills sessions at random points until its budget is used up.
type killer struct {
	mu   sync.Mutex
	rng  *rand.Rand
	left int
	odds map[stage.Point]int // one in
	done map[stage.Point]int
}

func newKiller(seed uint64, budget int) *killer {
	return &killer{rng: rand.New(rand.NewPCG(seed, 7)), left: budget, done: map[stage.Point]int{}, odds: map[stage.Point]int{
		stage.PointHandled: 3000, stage.PointCut: 30, stage.PointOutputs: 15, stage.PointMarkers: 2, stage.PointReports: 3,
		stage.PointCommitted: 5, stage.PointRevoked: 4}}
}

func (k *killer) hook(p stage.Point) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.left == 0 || k.rng.IntN(k.odds[p]) > 0 {
		return nil
	}
	k.left--
	k.done[p]++
	return fmt.Errorf("at %s: %w", p, errKilled)
}

// loseCommits makes the broker refuse offset commits now and then.
func loseCommits(c *kfake.Cluster, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 8))
	c.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if rng.IntN(3) > 0 {
			return nil, nil, false
		}
		r := req.(*kmsg.OffsetCommitRequest)
		resp := r.ResponseKind().(*kmsg.OffsetCommitResponse)
		for _, t := range r.Topics {
			rt := kmsg.NewOffsetCommitResponseTopic()
			rt.Topic, rt.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				rp := kmsg.NewOffsetCommitResponseTopicPartition()
				rp.Partition, rp.ErrorCode = p.Partition, kerr.UnknownServerError.Code
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp, nil, true
	})
}

// Every stage is killed at random points, commits are lost, instances come and go: counts stay those of a plain loop.
func TestKillsAndLostCommitsChangeNothing(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
			bootstrap := brokertest.Real()
			if bootstrap == "" {
				b := brokertest.Embedded(t)
				loseCommits(b.Cluster(), seed)
				bootstrap = b.Bootstrap()
			}
			k := setupOn(t, bootstrap, diamond)
			f := k.follow()
			s, kill := &seen{}, newKiller(seed, 25)
			k.runAll(s, func(c *stage.Config) { c.Hook = kill.hook })
			k.runAll(s, func(c *stage.Config) { c.Hook = kill.hook })
			const n = 1500
			k.feed("m", "markers", n)
			k.feed("l", "ledger", n)
			m := f.completed(k, "m")
			s.everything(k, "m", n)
			l := f.completed(k, "l")
			s.everything(k, "l", n)
			require.Equal(t, map[string]int{"ok": n}, l.counts())
			for name, times := range map[string]uint64{"read": 1, "parse": 1, "digest": 1} {
				got, failed := m.consumed(name)
				require.GreaterOrEqual(t, got, n*times, name)
				require.Zero(t, failed)
			}
			kill.mu.Lock()
			defer kill.mu.Unlock()
			t.Logf("killed at %v; %d outcomes were reported again", kill.done, l.repeats)
			require.Greater(t, len(kill.done), 2, "the test must kill")
		})
	}
}

// Rebalances of every stage in the middle, more instances than partitions, a slow consumer.
func TestRebalancesChangeNothing(t *testing.T) {
	k := setup(t, diamond)
	f := k.follow()
	s := &seen{}
	var handled atomic.Int64
	slow := func(name string) stage.Handler {
		h := s.wrap(name, k.forward(name))
		return func(ctx context.Context, r *stage.Record) ([]stage.Output, error) {
			if handled.Add(1)%50 == 0 { // a slow consumer
				timer := time.NewTimer(5 * time.Millisecond)
				defer timer.Stop()
				<-timer.C
			}
			return h(ctx, r)
		}
	}
	up := map[string]*instance{}
	for name := range k.topo.Stages {
		up[name] = k.run(name, slow(name))
	}
	const n = 2000
	var wg sync.WaitGroup
	wg.Go(func() { k.feed("m", "markers", n) })
	wg.Go(func() { k.feed("l", "ledger", n) })
	passed := func(x int64) {
		require.Eventually(t, func() bool { return handled.Load() > x }, patience, time.Millisecond)
	}
	passed(500)
	for name := range k.topo.Stages {
		for range 5 { // more than partitions
			k.run(name, slow(name))
		}
	}
	passed(3000)
	for name := range k.topo.Stages {
		require.NoError(t, up[name].stop(), "the first instance leaves")
	}
	wg.Wait()
	f.completed(k, "m")
	s.everything(k, "m", n)
	l := f.completed(k, "l")
	s.everything(k, "l", n)
	require.Equal(t, map[string]int{"ok": n}, l.counts())
}

// A stop drains: nothing is handled twice when nothing is killed.
func TestStoppingAndStartingHandlesNothingTwice(t *testing.T) {
	k := setup(t, twoStages)
	f := k.follow()
	s := &seen{}
	k.run("count", s.wrap("count", end))
	started := make(chan struct{}, 1<<16)
	h := s.wrap("copy", k.forward("copy"))
	copying := func(ctx context.Context, r *stage.Record) ([]stage.Output, error) {
		started <- struct{}{}
		return h(ctx, r)
	}
	in := k.run("copy", copying)
	const n = 3000
	k.feed("b-1", "ledger", n)
	for range 5 {
		for range n / 10 {
			<-started
		}
		require.NoError(t, in.stop())
		in = k.run("copy", copying)
	}
	b := f.completed(k, "b-1")
	require.Equal(t, map[string]int{"ok": n}, b.counts())
	s.mu.Lock()
	defer s.mu.Unlock()
	for index, times := range s.by["copy "+k.name("a")+" b-1"] {
		require.Equal(t, 1, times, "index %d", index)
	}
}

// A handler that ignores that its partition goes elsewhere is waited for, and no longer than the drain time.
func TestAHandlerThatHangsIsCancelled(t *testing.T) {
	k := setup(t, twoStages)
	f := k.follow()
	k.run("count", end)
	hanging := make(chan struct{}, 100)
	in := k.run("copy", func(ctx context.Context, _ *stage.Record) ([]stage.Output, error) {
		hanging <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}, func(c *stage.Config) { c.Flow.DrainFor = 50 * time.Millisecond })
	k.feed("b-1", "ledger", 20)
	<-hanging
	require.NoError(t, in.stop())
	k.run("copy", k.forward("copy"))
	b := f.completed(k, "b-1")
	require.Equal(t, map[string]int{"ok": 20}, b.counts(), "its records were left to the next one, and did not fail")
	require.Empty(t, k.deadLetters())
}
