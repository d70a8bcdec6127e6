package stage

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// session is one membership in the stage's group, from joining to leaving.
type session struct {
	*Desk
	ctx    context.Context // of handlers and of everything that is not a shut-down; its cause is the failure
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	units    map[partition]*unit
	room     chan struct{} // a full unit has got room
	commitMu sync.Mutex    // one commit at a time, so that positions do not go backwards
}

// pollMax is the number of records taken from the client at once.
const pollMax = 2000

// runSession runs one session until parent is done (then it drains, and returns nil) or something fails.
func runSession(parent context.Context, cfg Config) (err error) {
	s := &session{units: map[partition]*unit{}, room: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(parent))
	defer s.cancel(nil)
	if s.Desk, err = OpenDesk(parent, cfg, s.options(cfg)...); err != nil {
		return err
	}
	s.consume()
	work, stop := context.WithCancel(parent)
	unhook := context.AfterFunc(s.ctx, stop)
	var g errgroup.Group
	g.Go(func() error { s.poll(work); return nil })
	g.Go(func() error { s.commitEvery(work); return nil })
	_ = g.Wait()
	unhook()
	stop()
	return s.close()
}

func (s *session) options(cfg Config) []kgo.Opt {
	return []kgo.Opt{
		kgo.ConsumerGroup(cfg.Topology.Stages[cfg.Stage].Group),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(500 * time.Millisecond),
		kgo.MetadataMaxAge(time.Minute), // new partitions are found that soon
		kgo.AdjustFetchOffsetsFn(s.assigned),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, gone map[string][]int32) { s.revoked(gone) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, gone map[string][]int32) { s.lost(gone) }),
	}
}

// consume joins the group. It comes after everything that the callbacks need.
func (s *session) consume() { s.client.AddConsumeTopics(s.cfg.Topology.Stages[s.cfg.Stage].In...) }

// fail ends the session as a crash would: what is not durable yet is left to the next one.
func (s *session) fail(err error) { s.cancel(err) }

// poll hands fetched records to their units. A slow partition holds up no other, and no rebalance.
func (s *session) poll(ctx context.Context) {
	for {
		fetches := s.client.PollRecords(ctx, pollMax)
		if ctx.Err() != nil || fetches.IsClientClosed() {
			s.client.AllowRebalance()
			return
		}
		fetches.EachError(func(topic string, p int32, err error) {
			if !errors.Is(err, context.Canceled) {
				s.cfg.Log.Warn("fetch failed", "stage", s.cfg.Stage, "topic", topic, "partition", p, "error", err)
			}
		})
		fetches.EachPartition(func(f kgo.FetchTopicPartition) {
			if len(f.Records) > 0 {
				s.dispatch(partition{f.Topic, f.Partition}, f.Records)
			}
		})
		s.client.AllowRebalance()
		s.breathe(ctx)
	}
}

func (s *session) dispatch(p partition, recs []*kgo.Record) {
	s.mu.Lock()
	u := s.units[p]
	s.mu.Unlock()
	if u == nil { // given up between fetch and now; its next owner reads them
		return
	}
	u.waiting.Add(int64(len(recs)))
	select {
	case u.queue <- recs:
	case <-u.ctx.Done():
	}
}

// slow is how long a full unit is waited for before it counts as slow.
const slow = 20 * time.Millisecond

// breathe waits a moment for units that are full, and pauses those that stay so. Pausing at once would be dear: the
// client throws away what it has fetched for a partition that is paused.
func (s *session) breathe(ctx context.Context) {
	t := time.NewTimer(slow)
	defer t.Stop()
	for {
		full := s.full()
		if len(full) == 0 {
			return
		}
		select {
		case <-s.room:
		case <-ctx.Done():
			return
		case <-t.C:
			for p, u := range full {
				u.paused.Store(true)
				s.client.PauseFetchPartitions(map[string][]int32{p.topic: {p.id}})
				s.eased(u, u.waiting.Load()) // it may have got room just now
			}
			return
		}
	}
}

// full are the units that have more records waiting than they should and are not paused.
func (s *session) full() map[partition]*unit {
	s.mu.Lock()
	defer s.mu.Unlock()
	var full map[partition]*unit
	for p, u := range s.units {
		if u.waiting.Load() > int64(s.cfg.Flow.Buffer) && !u.paused.Load() {
			if full == nil {
				full = map[partition]*unit{}
			}
			full[p] = u
		}
	}
	return full
}

// eased is called when a unit has taken a record: at half of its buffer it is fed again.
func (s *session) eased(u *unit, waiting int64) {
	if waiting == int64(s.cfg.Flow.Buffer)/2 {
		poke(s.room)
	}
	if waiting <= int64(s.cfg.Flow.Buffer)/2 && u.paused.Load() && u.paused.CompareAndSwap(true, false) {
		s.client.ResumeFetchPartitions(map[string][]int32{u.name.Topic: {int32(u.name.Partition)}})
	}
}

// close leaves the group: drained when the stage stops, at once when the session failed.
func (s *session) close() error {
	s.mu.Lock()
	units := s.units
	s.units = map[partition]*unit{}
	s.mu.Unlock()
	failure := context.Cause(s.ctx)
	if failure == nil {
		limit := time.AfterFunc(2*s.cfg.Flow.DrainFor, s.Abort)
		each(units, (*unit).drain)
		if failure = context.Cause(s.ctx); failure == nil {
			s.lastCommit(units)
		}
		limit.Stop()
	}
	for _, u := range units {
		u.dead.Store(true)
		u.cancel(failure)
	}
	s.Abort()
	s.Close()
	each(units, (*unit).join)
	return failure
}

// lastCommit commits what was drained. When it does not succeed, the next owner does some work again.
func (s *session) lastCommit(units map[partition]*unit) {
	var err error
	for range lastCommits {
		if err = s.commit(s.Desk.ctx, units); err == nil || errors.Is(err, errHook) {
			return
		}
	}
	s.cfg.Log.Warn("last commit failed, some records will be handled again", "stage", s.cfg.Stage, "error", err)
}

// lastCommits is how often the last commit of a partition is tried.
const lastCommits = 3

// each calls fn for all units at once and waits.
func each(units map[partition]*unit, fn func(*unit)) {
	var wg sync.WaitGroup
	for _, u := range units {
		wg.Go(func() { fn(u) })
	}
	wg.Wait()
}
