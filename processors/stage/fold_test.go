package stage_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
)

// fold is a slow, obvious controller: it keeps every outcome of every task on every leg, and the set of units that
// reported END.
type fold struct {
	mu      sync.Mutex
	batches map[string]*folded
	changed chan struct{}
}

type folded struct {
	start   *codecs.BatchStart
	seals   map[uint32]*codecs.BatchSeal
	tasks   map[string]map[uint32]codecs.Outcome_Code // "<feeder>/<index>" by leg
	reasons map[string]string
	ends    map[string]*codecs.BatchEnd // by unit
	reports int
	repeats int
	verbs   []string

	differences []string
}

// follow reads the control topic until the test ends.
func (k *kit) follow() *fold {
	f := &fold{batches: map[string]*folded{}, changed: make(chan struct{})}
	c := brokertest.Client(k.t, k.bootstrap, kgo.ConsumeTopics(codecs.Topic(k.prefix, codecs.TopicControl)),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100e6))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	k.t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			fetches := c.PollFetches(ctx)
			f.mu.Lock()
			fetches.EachRecord(func(r *kgo.Record) { f.apply(k, r) })
			close(f.changed)
			f.changed = make(chan struct{})
			f.mu.Unlock()
		}
	}()
	return f
}

func (f *fold) apply(k *kit, r *kgo.Record) {
	rec := codecs.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		rec.Headers = append(rec.Headers, codecs.Header(h))
	}
	var ev codecs.Event
	if err := codecs.Decode(&rec, &ev); err != nil {
		k.t.Errorf("control record that the controller would refuse: %v", err)
		return
	}
	b := f.batches[ev.Key]
	if b == nil {
		b = &folded{seals: map[uint32]*codecs.BatchSeal{}, tasks: map[string]map[uint32]codecs.Outcome_Code{},
			reasons: map[string]string{}, ends: map[string]*codecs.BatchEnd{}}
		f.batches[ev.Key] = b
	}
	switch d := ev.Data.(type) {
	case *codecs.BatchStart:
		b.start = d
	case *codecs.BatchSeal:
		b.seals[d.Feeder] = d
	case *codecs.BatchEnd:
		b.ends[d.Unit.Path()] = d
	case *codecs.BatchCommand:
		b.verbs = append(b.verbs, d.Verb)
		b.differences = append(b.differences, d.GetArgs().GetDifference())
	case *codecs.BatchReport:
		b.report(k, d)
	}
}

func (b *folded) report(k *kit, d *codecs.BatchReport) {
	b.reports++
	if legs := len(b.start.GetLegs()); b.start != nil && b.start.Mode == "ledger" && int(max(d.Legs, 1)) != max(legs, 1) {
		k.t.Errorf("report of %d legs, START has %d: the controller would not count it", d.Legs, legs)
	}
	for _, it := range d.Items {
		err := codecs.ForEachRange(it, func(first, last uint32) {
			for i := uint64(first); i <= uint64(last); i++ {
				id := fmt.Sprintf("%d/%d", d.Feeder, i)
				if b.tasks[id] == nil {
					b.tasks[id] = map[uint32]codecs.Outcome_Code{}
				}
				if _, ok := b.tasks[id][it.Leg]; ok {
					b.repeats++
					continue
				}
				b.tasks[id][it.Leg] = it.Outcome
				if it.Reason != "" {
					b.reasons[id] = it.Reason
				}
			}
		})
		if err != nil {
			k.t.Errorf("report item: %v", err)
		}
	}
}

func (b *folded) sealed() (uint32, bool) {
	if b == nil || b.start == nil || len(b.seals) < max(int(b.start.Feeders), 1) {
		return 0, false
	}
	var n uint32
	for _, s := range b.seals {
		n += s.Total
	}
	return n, true
}

// complete says whether every task has an outcome on every leg (ledger), or every unit has reported END (markers).
func (b *folded) complete() bool {
	n, ok := b.sealed()
	if !ok {
		return false
	}
	if b.start.Mode == "markers" {
		for _, set := range b.start.Units {
			for p := range set.Partitions {
				if b.ends[(&codecs.Unit{Stage: set.Stage, Topic: set.Topic, Partition: p}).Path()] == nil {
					return false
				}
			}
		}
		return true
	}
	if uint32(len(b.tasks)) < n {
		return false
	}
	for _, legs := range b.tasks {
		if len(legs) < len(b.start.Legs) {
			return false
		}
	}
	return true
}

// counts adds the tasks up by their worst outcome.
func (b *folded) counts() map[string]int {
	n := map[string]int{}
	for _, legs := range b.tasks {
		worst := codecs.Outcome_unspecified
		for o := range maps.Values(legs) {
			worst = codecs.Worst(worst, o)
		}
		n[worst.String()]++
	}
	return n
}

// clone copies a batch as it is.
func (b *folded) clone() *folded {
	c := *b
	c.seals, c.reasons, c.ends = maps.Clone(b.seals), maps.Clone(b.reasons), maps.Clone(b.ends)
	c.verbs, c.differences = slices.Clone(b.verbs), slices.Clone(b.differences)
	c.tasks = map[string]map[uint32]codecs.Outcome_Code{}
	for id, legs := range b.tasks {
		c.tasks[id] = maps.Clone(legs)
	}
	return &c
}

// until waits for a condition on a batch and returns it as it was then.
func (f *fold) until(k *kit, batch string, what string, cond func(*folded) bool) *folded {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		f.mu.Lock()
		b, changed := f.batches[batch], f.changed
		ok := b != nil && cond(b)
		if ok {
			b = b.clone()
		}
		state := b.String()
		f.mu.Unlock()
		if ok {
			return b
		}
		select {
		case <-changed:
		case <-ctx.Done():
			require.FailNow(k.t, "waited too long", "batch %s: %s: %s", batch, what, state)
		}
	}
}

// completed waits until a batch is complete.
func (f *fold) completed(k *kit, batch string) *folded {
	k.t.Helper()
	return f.until(k, batch, "complete", (*folded).complete)
}

func (b *folded) String() string {
	if b == nil {
		return "never heard of"
	}
	n, ok := b.sealed()
	return fmt.Sprintf("sealed %v with %d, %d tasks %v, ENDs %v", ok, n, len(b.tasks), b.counts(), slices.Sorted(maps.Keys(b.ends)))
}
