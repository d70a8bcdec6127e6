package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/quiesce/quiesce/codecs"
)

// smalls runs many small batches at once and takes the latency of each: last completion handed to the producer ->
// completion event there.
type smalls struct {
	f      *field
	client *kgo.Client
	stop   context.CancelFunc
	reader sync.WaitGroup

	mu   sync.Mutex
	wait map[string]*awaited
}

// awaited is a batch whose events somebody waits for.
type awaited struct {
	sealed, ended chan struct{}
	at            time.Time // of the end
}

// figures are latencies of small batches on other partitions than the hot batch's, and on the same.
type figures struct{ other, same []time.Duration }

func (f *field) newSmalls() (*smalls, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(f.bootstrap), kgo.ProducerLinger(0), kgo.ConsumeTopics(f.topic(codecs.TopicEvents)),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(5*time.Second))
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &smalls{f: f, client: client, stop: stop, wait: map[string]*awaited{}}
	s.reader.Go(func() { s.read(ctx) })
	return s, nil
}

func (s *smalls) close() {
	s.stop()
	s.reader.Wait()
	s.client.Close()
}

func (s *smalls) read(ctx context.Context) {
	for ctx.Err() == nil {
		s.client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			a := s.of(string(r.Key))
			switch {
			case eventType(r) == codecs.TypeBatchSealed:
				close(a.sealed)
			case terminal(eventID(r)):
				a.at = time.Now()
				close(a.ended)
			}
		})
	}
}

func (s *smalls) of(id string) *awaited {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.wait[id]
	if a == nil {
		a = &awaited{sealed: make(chan struct{}), ended: make(chan struct{})}
		s.wait[id] = a
	}
	return a
}

// ended waits for the end of a batch.
func (s *smalls) ended(ctx context.Context, id string) error {
	return until(ctx, s.of(id).ended, id+" to end")
}

func until(ctx context.Context, c <-chan struct{}, what string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
	}
}

// run runs the batches, half of them on the hot batch's partition, and spreads their starts over a time.
func (s *smalls) run(ctx context.Context, name string, over time.Duration) (figures, error) {
	var mu sync.Mutex
	var out figures
	group, ctx := errgroup.WithContext(ctx)
	begin := time.Now()
	n := s.f.cfg.Batches
	for i := range n {
		same := i%2 == 0
		partition := int32(0)
		if !same {
			partition = 1 + int32(i/2)%(s.f.cfg.Partitions-1)
		}
		id := idOn(fmt.Sprintf("%s-%d", name, i), partition, s.f.cfg.Partitions)
		if over > 0 {
			if err := pace(ctx, begin, i, float64(n)/over.Seconds()); err != nil {
				break
			}
		}
		group.Go(func() error {
			d, err := s.batch(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			if same {
				out.same = append(out.same, d)
			} else {
				out.other = append(out.other, d)
			}
			return err
		})
	}
	return out, group.Wait()
}

// batch runs one and returns its latency.
func (s *smalls) batch(ctx context.Context, id string) (time.Duration, error) {
	recs, err := s.f.recordsOf(id, smallTasks, 1)
	if err != nil {
		return 0, err
	}
	a, last := s.of(id), len(recs)-1
	if err := s.client.ProduceSync(ctx, recs[:last]...).FirstErr(); err != nil {
		return 0, err
	}
	if err := until(ctx, a.sealed, id+" to be sealed"); err != nil {
		return 0, err
	}
	begin := time.Now()
	s.client.Produce(ctx, recs[last], nil)
	if err := until(ctx, a.ended, id+" to end"); err != nil {
		return 0, err
	}
	return a.at.Sub(begin), nil
}
