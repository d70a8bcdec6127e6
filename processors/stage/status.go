package stage

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/topology"
)

// status follows the compacted topic of batch states, so that units can forget what is over, and so that a unit that
// was reset knows what is open.
type status struct {
	desk   *Desk
	topic  string
	client *kgo.Client

	mu      sync.Mutex
	batches map[string]*codecs.BatchStatus // by batch id
	next    map[int32]int64                // position of the reader
	changed chan struct{}                  // closed and replaced at each step of the reader
}

func followStatus(d *Desk) (*status, error) {
	f := &status{desk: d, topic: codecs.Topic(d.cfg.Prefix, codecs.TopicStatus), batches: map[string]*codecs.BatchStatus{},
		next: map[int32]int64{}, changed: make(chan struct{})}
	opts := append([]kgo.Opt{kgo.SeedBrokers(strings.Split(d.cfg.Bootstrap, ",")...), kgo.ClientID(d.cfg.ClientID),
		kgo.ConsumeTopics(f.topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}, d.cfg.Options...)
	var err error
	if f.client, err = kgo.NewClient(opts...); err != nil {
		return nil, permanent{fmt.Errorf("client: %w", err)}
	}
	return f, nil
}

func (f *status) close() { f.client.Close() }

// run follows the topic until ctx is done.
func (f *status) run(ctx context.Context) {
	for ctx.Err() == nil {
		fetches := f.client.PollFetches(ctx)
		if fetches.IsClientClosed() {
			return
		}
		fetches.EachRecord(f.apply)
		f.mu.Lock()
		close(f.changed)
		f.changed = make(chan struct{})
		f.mu.Unlock()
	}
}

// apply takes one status record. One that cannot be read is nobody's end: it is passed over.
func (f *status) apply(k *kgo.Record) {
	rec := fromKgo(k)
	var ev codecs.Event
	err := codecs.Decode(&rec, &ev)
	f.mu.Lock()
	f.next[k.Partition] = k.Offset + 1
	st, ok := ev.Data.(*codecs.BatchStatus)
	switch {
	case err != nil || codecs.IsReserved(rec.Key):
		st = nil
	case !ok || st == nil:
		delete(f.batches, ev.Key)
	default:
		f.batches[strings.Clone(ev.Key)] = st
	}
	f.mu.Unlock()
	if st == nil || !st.State.Terminal() {
		return
	}
	f.desk.mu.Lock()
	defer f.desk.mu.Unlock()
	for book := range f.desk.books {
		book.drop(ev.Key, st.Run, max(st.Round, 1))
	}
}

// forget drops from a new book what is known to be over.
func (f *status) forget(book *Book) {
	f.mu.Lock()
	over := map[string]*codecs.BatchStatus{}
	for batch, st := range f.batches {
		if st.State.Terminal() {
			over[batch] = st
		}
	}
	f.mu.Unlock()
	for batch, st := range over {
		book.drop(batch, st.Run, max(st.Round, 1))
	}
}

// over says whether a round of a run is known to have ended.
func (f *status) over(batch, run string, round uint32) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	st := f.batches[batch]
	return st != nil && st.Run == run && st.State.Terminal() && round <= max(st.Round, 1)
}

type openBatch struct{ batch, run string }

// open lists the open batches of the stage's topology whose completion depends on units, after reading the topic to its
// present end.
func (f *status) open(ctx context.Context) ([]openBatch, error) {
	ends, err := f.desk.admin.ListEndOffsets(ctx, f.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("end of %s: %w", f.topic, err)
	}
	for {
		f.mu.Lock()
		behind := false
		for p, o := range ends[f.topic] {
			behind = behind || f.next[p] < o.Offset
		}
		changed := f.changed
		f.mu.Unlock()
		if !behind {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var open []openBatch
	for batch, st := range f.batches {
		if !st.State.Terminal() && st.Topology.GetName() == f.desk.cfg.Topology.Name && st.Mode != "" && st.Mode != topology.ModeLedger {
			open = append(open, openBatch{batch, st.Run})
		}
	}
	sort.Slice(open, func(i, j int) bool { return open[i].batch < open[j].batch })
	return open, nil
}
