package stage_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/stage"
)

// diamond is read -> {parse, digest} -> report with two inputs.
const diamond = `
topology: diamond
version: 1
source: ~paths
topics: {~paths: {partitions: 4}, ~files: {partitions: 4}, ~asts: {partitions: 3}, ~digests: {partitions: 2}}
stages:
  read:   {in: [~paths], out: [~files], group: ~read}
  parse:  {in: [~files], out: [~asts], group: ~parse}
  digest: {in: [~files], out: [~digests], group: ~digest}
  report: {in: [~asts, ~digests], group: ~report}
`

// seen records which roots each stage has handled, per input topic.
type seen struct {
	mu sync.Mutex
	by map[string]map[uint32]int
}

func (s *seen) wrap(name string, h stage.Handler) stage.Handler {
	return func(ctx context.Context, r *stage.Record) ([]stage.Output, error) {
		out, err := h(ctx, r)
		s.mu.Lock()
		defer s.mu.Unlock()
		key := name + " " + r.Topic + " " + r.Batch
		if s.by == nil {
			s.by = map[string]map[uint32]int{}
		}
		if s.by[key] == nil {
			s.by[key] = map[uint32]int{}
		}
		s.by[key][r.Index]++
		return out, err
	}
}

// roots is the number of different roots that a stage has handled from a topic.
func (s *seen) roots(name, topic, batch string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.by[name+" "+topic+" "+batch])
}

// everything checks that each stage has handled each root of a batch from each of its inputs: what a plain loop does.
func (s *seen) everything(k *kit, batch string, n int) {
	k.t.Helper()
	for name, st := range k.topo.Stages {
		for _, topic := range st.In {
			require.Equal(k.t, n, s.roots(name, topic, batch), "EARLY: %s from %s of %s", name, topic, batch)
		}
	}
}

// runAll runs instances of every stage.
func (k *kit) runAll(s *seen, change ...func(*stage.Config)) map[string]*instance {
	all := map[string]*instance{}
	for name := range k.topo.Stages {
		all[name] = k.run(name, s.wrap(name, k.forward(name)), change...)
	}
	return all
}

// consumed adds up what the units of a stage reported for a batch.
func (b *folded) consumed(stage string) (n, failed uint64) {
	for _, e := range b.ends {
		if e.Unit.Stage == stage {
			n, failed = n+e.Consumed, failed+e.Failed
		}
	}
	return n, failed
}

func TestMarkersOverADiamondWithTwoInputs(t *testing.T) {
	k := setup(t, diamond)
	f := k.follow()
	s := &seen{}
	k.runAll(s)
	k.feed("b-1", "markers", 3000)
	b := f.completed(k, "b-1")
	s.everything(k, "b-1", 3000)
	for stage, want := range map[string]uint64{"read": 3000, "parse": 3000, "digest": 3000, "report": 6000} {
		n, failed := b.consumed(stage)
		require.Equal(t, want, n, stage)
		require.Zero(t, failed)
	}
	require.Empty(t, b.tasks, "successes are not reported one by one")
	require.Equal(t, 4+4+4+3+2, len(b.ends))
}

func TestMarkersWithPartitionsThatHaveNoData(t *testing.T) {
	k := setup(t, diamond)
	f := k.follow()
	s := &seen{}
	k.runAll(s)
	k.feed("empty", "markers", 0)
	k.feed("one", "markers", 1)
	f.completed(k, "empty")
	f.completed(k, "one")
	s.everything(k, "one", 1)
}

// An END that overtakes the data of another partition: read is held up in one partition, so that END of the others is
// there long before its data.
func TestMarkersWhenEndOvertakesAnotherPartition(t *testing.T) {
	k := setup(t, diamond)
	f := k.follow()
	s := &seen{}
	release := make(chan struct{})
	held := make(chan struct{})
	var once sync.Once
	for name := range k.topo.Stages {
		h := s.wrap(name, k.forward(name))
		if name == "read" {
			h = func(ctx context.Context, r *stage.Record) ([]stage.Output, error) {
				if r.Partition == 2 {
					once.Do(func() { close(held) })
					select {
					case <-release:
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}
				return s.wrap("read", k.forward("read"))(ctx, r)
			}
		}
		k.run(name, h)
	}
	k.feed("b-1", "markers", 400)
	<-held
	read := func(p int) string { return fmt.Sprintf("read/%s/%d", k.topo.Source, p) }
	f.until(k, "b-1", "three of four ENDs of read", func(b *folded) bool {
		return b.ends[read(0)] != nil && b.ends[read(1)] != nil && b.ends[read(3)] != nil
	})
	f.mu.Lock()
	require.Equal(t, 3, len(f.batches["b-1"].ends), "nobody passes END on before the fourth: %v",
		slices.Sorted(maps.Keys(f.batches["b-1"].ends)))
	f.mu.Unlock()
	close(release)
	f.completed(k, "b-1")
	s.everything(k, "b-1", 400)
}

func TestMarkersNameFailures(t *testing.T) {
	k := setup(t, diamond)
	f := k.follow()
	for name := range k.topo.Stages {
		h := k.forward(name)
		if name == "parse" {
			h = func(ctx context.Context, r *stage.Record) ([]stage.Output, error) {
				if r.Index%7 == 3 {
					return nil, fmt.Errorf("cannot parse %s", r.Value)
				}
				return k.forward("parse")(ctx, r)
			}
		}
		k.run(name, h)
	}
	k.feed("b-1", "markers", 70)
	b := f.completed(k, "b-1")
	n, failed := b.consumed("parse")
	require.EqualValues(t, 70, n)
	require.EqualValues(t, 10, failed)
	n, _ = b.consumed("report")
	require.EqualValues(t, 130, n)
	require.Equal(t, map[string]int{"failed": 10}, b.counts())
	require.Equal(t, "cannot parse v3", b.reasons["0/3"])
	require.Len(t, k.deadLetters(), 10)
}

// Batches of both modes interleave, many at once, the same task ids in each.
func TestBatchesOfBothModesInterleave(t *testing.T) {
	k := setup(t, diamond)
	f := k.follow()
	s := &seen{}
	k.runAll(s)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() { k.feed(fmt.Sprintf("b-%d", i), []string{"ledger", "markers"}[i%2], 100) })
	}
	wg.Wait()
	for i := range 20 {
		b := f.completed(k, fmt.Sprintf("b-%d", i))
		s.everything(k, fmt.Sprintf("b-%d", i), 100)
		if i%2 == 0 {
			require.Equal(t, map[string]int{"ok": 100}, b.counts())
			require.Empty(t, b.ends)
		}
	}
}

// A topic that grows while a batch is open: its records keep to the old partitions, and END goes to those.
func TestMarkersWhenATopicGrows(t *testing.T) {
	k := setup(t, `
topology: grows
version: 1
source: ~a
topics: {~a: {}, ~b: {}}
stages:
  copy:  {in: [~a], out: [~b], group: ~copy}
  count: {in: [~b], group: ~count}
`)
	f := k.follow()
	s := &seen{}
	release := make(chan struct{})
	k.run("copy", func(ctx context.Context, r *stage.Record) ([]stage.Output, error) {
		select {
		case <-release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return s.wrap("copy", k.forward("copy"))(ctx, r)
	})
	k.feed("b-1", "markers", 200)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for name := range k.topo.Topics {
		_, err := k.admin.UpdatePartitions(ctx, 5, name)
		require.NoError(t, err)
	}
	close(release)
	k.run("count", s.wrap("count", end))
	f.completed(k, "b-1")
	s.everything(k, "b-1", 200)
	for name := range k.topo.Topics {
		for _, r := range k.records(name) {
			require.Less(t, r.Partition, int32(2), "pinned")
		}
	}
	k.feed("b-2", "markers", 200)
	b := f.completed(k, "b-2")
	s.everything(k, "b-2", 200)
	require.Equal(t, 10, len(b.ends), "the next batch uses all partitions")
}

func TestEndIsForeignToOtherReaders(t *testing.T) {
	k := setup(t, diamond)
	f := k.follow()
	k.runAll(&seen{})
	k.feed("b-1", "markers", 10)
	f.completed(k, "b-1")
	markers := 0
	for _, r := range k.records(k.name("files")) {
		tag, ok, err := codecs.ParseTag(r.Headers)
		require.NoError(t, err)
		require.True(t, ok)
		if tag.IsControl() {
			markers++
			require.Nil(t, r.Key)
			require.NotNil(t, r.Value)
			require.Empty(t, r.Value)
		}
	}
	require.Equal(t, 4*4, markers, "U x P")
}
