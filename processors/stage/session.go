package stage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/topology"
)

// session is one membership in the stage's group, from joining to leaving.
type session struct {
	cfg     Config
	wrap    *wrapper
	group   string
	control string // topic
	encoder codecs.Encoder
	facts   facts
	client  *kgo.Client
	admin   *kadm.Client
	status  *status

	ctx        context.Context // of handlers and of everything that is not a shut-down; its cause is the failure
	cancel     context.CancelCauseFunc
	produceCtx context.Context // of sends; ends at a crash, and when draining takes too long
	abort      context.CancelFunc

	mu       sync.Mutex
	units    map[partition]*unit
	commitMu sync.Mutex // one commit at a time, so that positions do not go backwards
}

// partition names one partition of an input.
type partition struct {
	topic string
	id    int32
}

// pollMax is the number of records taken from the client at once.
const pollMax = 2000

// runSession runs one session until parent is done (then it drains, and returns nil) or something fails.
func runSession(parent context.Context, cfg Config) (err error) {
	s := &session{cfg: cfg, group: cfg.Topology.Stages[cfg.Stage].Group, control: codecs.Topic(cfg.Prefix, codecs.TopicControl),
		encoder: codecs.Encoder{Source: codecs.Source(cfg.Prefix, cfg.ClientID)}, units: map[partition]*unit{}}
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(parent))
	s.produceCtx, s.abort = context.WithCancel(context.WithoutCancel(parent))
	defer s.abort()
	defer s.cancel(nil)
	if s.client, err = kgo.NewClient(s.options()...); err != nil {
		return permanent{fmt.Errorf("client: %w", err)}
	}
	s.admin = kadm.NewClient(s.client)
	if s.facts, err = readFacts(parent, s.admin, cfg); err != nil {
		s.client.CloseAllowingRebalance()
		return err
	}
	s.wrap = newWrapper(cfg, s.facts.counts)
	if s.status, err = followStatus(s); err != nil {
		s.client.CloseAllowingRebalance()
		return err
	}
	s.consume()
	work, stop := context.WithCancel(parent)
	unhook := context.AfterFunc(s.ctx, stop)
	var g errgroup.Group
	g.Go(func() error { s.poll(work); return nil })
	g.Go(func() error { s.commitEvery(work); return nil })
	g.Go(func() error { s.status.run(work); return nil })
	_ = g.Wait()
	unhook()
	stop()
	return s.close()
}

func (s *session) options() []kgo.Opt {
	cfg := s.cfg
	return append([]kgo.Opt{
		kgo.SeedBrokers(strings.Split(cfg.Bootstrap, ",")...),
		kgo.ClientID(cfg.ClientID),
		kgo.ConsumerGroup(s.group),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(500 * time.Millisecond),
		kgo.AdjustFetchOffsetsFn(s.assigned),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, gone map[string][]int32) { s.revoked(gone) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, gone map[string][]int32) { s.lost(gone) }),
		kgo.RecordPartitioner(partitioner()),
		kgo.ProducerLinger(0),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.AllowIdempotentProduceCancellation(), // sends are cancelled only when the client is thrown away
	}, cfg.Options...)
}

// consume joins the group. It comes after everything that the callbacks need.
func (s *session) consume() { s.client.AddConsumeTopics(s.cfg.Topology.Stages[s.cfg.Stage].In...) }

// fail ends the session as a crash would: what is not durable yet is left to the next one.
func (s *session) fail(err error) { s.cancel(err) }

// poll hands fetched records to their units. It never blocks on one, so that a slow partition holds up no other and no
// rebalance.
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
	}
}

func (s *session) dispatch(p partition, recs []*kgo.Record) {
	s.mu.Lock()
	u := s.units[p]
	s.mu.Unlock()
	if u == nil { // given up between fetch and now; its next owner reads them
		return
	}
	if n := u.waiting.Add(int64(len(recs))); n > int64(s.cfg.Flow.Buffer) {
		u.paused.Store(true)
		s.client.PauseFetchPartitions(map[string][]int32{p.topic: {p.id}})
	}
	select {
	case u.queue <- recs:
	case <-u.ctx.Done():
	}
}

// eased resumes fetching for a unit that has worked off half of its records.
func (s *session) eased(u *unit, waiting int64) {
	if waiting <= int64(s.cfg.Flow.Buffer)/2 && u.paused.CompareAndSwap(true, false) {
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
		limit := time.AfterFunc(2*s.cfg.Flow.DrainFor, s.abort)
		each(units, (*unit).drain)
		if failure = context.Cause(s.ctx); failure == nil {
			failure = s.commit(s.produceCtx, units)
		}
		limit.Stop()
	}
	for _, u := range units {
		u.dead.Store(true)
		u.cancel(failure)
	}
	s.abort()
	s.client.CloseAllowingRebalance()
	each(units, (*unit).join)
	s.status.close()
	return failure
}

// each calls fn for all units at once and waits.
func each(units map[partition]*unit, fn func(*unit)) {
	var wg sync.WaitGroup
	for _, u := range units {
		wg.Go(func() { fn(u) })
	}
	wg.Wait()
}

// facts are what the brokers say about the topics.
type facts struct {
	counts topology.Partitions // declared where declared
	ids    map[string]codecs.TopicID
}

// readFacts looks the topology's topics up. The stage's own must exist and be at least as large as declared.
func readFacts(ctx context.Context, admin *kadm.Client, cfg Config) (facts, error) {
	f := facts{counts: topology.Partitions{}, ids: map[string]codecs.TopicID{}}
	s := cfg.Topology.Stages[cfg.Stage]
	own := append(append([]string{}, s.In...), s.Out...)
	var names []string
	for name := range cfg.Topology.Topics {
		names = append(names, name)
	}
	details, err := admin.ListTopics(ctx, names...)
	if err != nil {
		return f, fmt.Errorf("look topics up: %w", err)
	}
	for _, name := range names {
		d := details[name]
		f.ids[name] = codecs.TopicID(d.ID)
		f.counts[name] = cfg.Topology.Topics[name].Partitions
		if f.counts[name] == 0 {
			f.counts[name] = int32(len(d.Partitions))
		}
	}
	for _, name := range own {
		d, declared := details[name], cfg.Topology.Topics[name].Partitions
		if d.Err != nil || len(d.Partitions) == 0 {
			return f, fmt.Errorf("topic %s: not there: %w", name, errors.Join(d.Err, errNoTopic))
		}
		if int32(len(d.Partitions)) < declared {
			return f, permanent{fmt.Errorf("topic %s has %d partitions, %d are declared", name, len(d.Partitions), declared)}
		}
	}
	return f, nil
}

var errNoTopic = errors.New("create the topics of the topology first")
