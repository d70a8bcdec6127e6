package processors

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

func TestProcessorCompletesBatches(t *testing.T) {
	for _, through := range []bool{false, true} {
		t.Run(fmt.Sprintf("through goka %v", through), func(t *testing.T) {
			d := deploy(t)
			cfg := d.config(&tally{})
			cfg.ThroughGoka = through
			_, stop := d.start(cfg)
			for i := range 20 {
				d.send(d.report(fmt.Sprint("b", i), 1, 2, 3), d.event(fmt.Sprint("b", i), codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "r", Total: 4}))
			}
			for i := range 20 {
				d.send(d.report(fmt.Sprint("b", i), 3, 100))
			}
			seen := map[string]bool{}
			d.read(codecs.TopicEvents, func(r *kgo.Record) bool {
				for _, h := range r.Headers {
					if h.Key == codecs.HeaderType && string(h.Value) == "quiesce.batch.completed.v1" {
						seen[string(r.Key)] = true
					}
				}
				return len(seen) == 20
			})
			stop()
		})
	}
}

func newRand(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if *seedFlag != 0 {
		seed = *seedFlag
	}
	t.Logf("-seed %d", seed)
	return rand.New(rand.NewPCG(seed, 2))
}

func TestProcessorRestartsOnAnyDisk(t *testing.T) {
	d := deploy(t)
	rnd := newRand(t)
	cfg := d.config(&tally{})
	cfg.InstanceID = "one"
	older := filepath.Join(t.TempDir(), "older")
	for round, dir := range []string{"", "empty", "same", "older"} {
		switch dir {
		case "empty":
			cfg.DataDir = t.TempDir()
		case "older":
			require.NoError(t, os.RemoveAll(cfg.DataDir))
			require.NoError(t, os.CopyFS(cfg.DataDir, os.DirFS(older)))
		}
		d.traffic(rnd, 200)
		p, stop := d.start(cfg)
		d.settled(p)
		stop()
		if dir == "empty" {
			require.NoError(t, os.CopyFS(older, os.DirFS(cfg.DataDir)))
		}
		d.verdict()
		t.Logf("round %d on %q disk", round, dir)
	}
}

func TestGroupOffsetsDoNotDecide(t *testing.T) {
	rule(t, rules{followGroup: true}, func(t *testing.T, off rules) error {
		d := deploy(t)
		rnd := newRand(t)
		cfg := d.config(&tally{})
		cfg.off = off
		admin := kadm.NewClient(d.client)
		group, topic := codecs.Group(d.prefix, codecs.GroupController), d.topic(codecs.TopicControl)
		p, stop := d.start(cfg)
		d.calm(rnd, 100)
		d.settled(p)
		stop()
		d.calm(rnd, 100)
		ends, err := admin.ListEndOffsets(t.Context(), topic)
		require.NoError(t, err)
		require.NoError(t, admin.CommitAllOffsets(t.Context(), group, ends.Offsets())) // forward
		p, stop = d.start(cfg)
		if off.followGroup {
			d.ready(p)
			stop()
			w := newWorld(1)
			w.topics[wInput] = &logFile{recs: d.partition(topic, 0)}
			w.topics[wTable] = &logFile{recs: d.partition(codecs.Table(d.prefix, codecs.GroupController), 0)}
			return w.sameRows(w.oracle())
		}
		d.settled(p)
		stop()
		for _, back := range []bool{true, false} {
			d.calm(rnd, 100)
			if back {
				require.NoError(t, admin.CommitAllOffsets(t.Context(), group, starts(ends)))
			} else {
				_, err := admin.DeleteGroup(t.Context(), group) // expired
				require.NoError(t, err)
			}
			p, stop = d.start(cfg)
			d.settled(p)
			stop()
			if back {
				require.Positive(t, counterValue(t, p.m.ignored), "the difference is reported")
			}
		}
		d.verdict()
		return nil
	})
}

func starts(ends kadm.ListedOffsets) kadm.Offsets {
	o := ends.Offsets()
	for t, ps := range o {
		for p, at := range ps {
			at.At = 0
			o[t][p] = at
		}
	}
	return o
}

func TestRebalanceLosesNothingAndDoesNotPause(t *testing.T) {
	rule(t, rules{gokaPause: true}, func(t *testing.T, off rules) error {
		d := deploy(t)
		rnd := newRand(t)
		cfg := d.config(&tally{})
		cfg.off = off
		a, stopA := d.start(cfg)
		d.ready(a)
		d.calm(rnd, 200)
		b, stopB := d.start(d.config(&tally{}))
		d.calm(rnd, 200)
		d.ready(a, b)
		require.NotEmpty(t, b.Status(), "the second instance has a share")
		d.calm(rnd, 200)
		d.settled(a, b)
		left := time.Now()
		stopB()
		d.ready(a)
		d.calm(rnd, 100)
		d.settled(a)
		pause := time.Since(left)
		stopA()
		d.verdict()
		if pause >= 5*time.Second {
			return fmt.Errorf("a pause of %s", pause) // goka's
		}
		return nil
	})
}

func TestFiveInstancesAtOnce(t *testing.T) {
	d := deploy(t)
	rnd := newRand(t)
	d.calm(rnd, 100)
	var ps []*Processor
	var stops []func()
	for range 5 {
		p, stop := d.start(d.config(&tally{}))
		ps, stops = append(ps, p), append(stops, stop)
	}
	d.ready(ps...)
	d.calm(rnd, 200)
	d.settled(ps...)
	for _, stop := range stops[1:] {
		stop()
	}
	d.calm(rnd, 100)
	d.settled(ps[0])
	d.verdict()
}

func TestProcessorWaitsForTopics(t *testing.T) {
	rule(t, rules{giveUp: true}, func(t *testing.T, off rules) error {
		d := deploy(t)
		cfg := d.config(&tally{})
		cfg.off = off
		table := codecs.Table(d.prefix, codecs.GroupController)
		admin := kadm.NewClient(d.client)
		_, err := admin.DeleteTopics(t.Context(), table)
		require.NoError(t, err)
		require.Eventually(t, func() bool { // brokers hear of it a moment later
			topics, err := admin.ListTopics(t.Context(), table)
			return err == nil && errors.Is(topics[table].Err, kerr.UnknownTopicOrPartition)
		}, time.Minute, 10*time.Millisecond)
		if off.giveUp {
			p, err := New(cfg)
			require.NoError(t, err)
			return p.Run(t.Context())
		}
		p, stop := d.start(cfg)
		require.Eventually(t, func() bool { return p.Ready() != nil && counterValue(t, p.m.restarts) > 1 }, time.Minute, 10*time.Millisecond)
		require.ErrorContains(t, p.Ready(), table)
		compact := "compact"
		_, err = admin.CreateTopic(t.Context(), testPartitions, -1, map[string]*string{"cleanup.policy": &compact}, table)
		require.NoError(t, err)
		d.ready(p)
		stop()
		return nil
	})
}

func TestPartitionCountsMustAgree(t *testing.T) {
	d := deploy(t)
	admin, table := kadm.NewClient(d.client), codecs.Table(d.prefix, codecs.GroupController)
	require.Eventually(t, func() bool { // a broker that has just made the topic may not know it yet
		grown, err := admin.CreatePartitions(t.Context(), 1, table)
		return err == nil && grown.Error() == nil
	}, time.Minute, 100*time.Millisecond)
	require.Eventually(t, func() bool { // brokers hear of it a moment later
		topics, err := admin.ListTopics(t.Context(), table)
		return err == nil && len(topics[table].Partitions) == testPartitions+1
	}, time.Minute, 10*time.Millisecond)
	p, _ := d.start(d.config(&tally{}))
	require.Eventually(t, func() bool { return counterValue(t, p.m.restarts) > 0 }, time.Minute, 10*time.Millisecond)
	require.ErrorContains(t, p.Ready(), "must be equal")
}

func TestTableMustBeCompacted(t *testing.T) {
	d := deploy(t)
	table, value := codecs.Table(d.prefix, codecs.GroupController), "delete"
	admin := kadm.NewClient(d.client)
	_, err := admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "cleanup.policy", Value: &value}}, table)
	require.NoError(t, err)
	require.Eventually(t, func() bool { // brokers hear of it a moment later
		topics, err := admin.DescribeTopicConfigs(t.Context(), table)
		if err != nil || len(topics) != 1 {
			return false
		}
		for _, c := range topics[0].Configs {
			if c.Key == "cleanup.policy" {
				return c.MaybeValue() == value
			}
		}
		return false
	}, time.Minute, 10*time.Millisecond)
	rule(t, rules{anyTopic: true}, func(t *testing.T, off rules) error {
		cfg := d.config(&tally{})
		cfg.off = off
		p, stop := d.start(cfg)
		defer stop()
		require.Eventually(t, func() bool { return counterValue(t, p.m.restarts) > 0 || p.Ready() == nil }, time.Minute, 10*time.Millisecond)
		err := p.Ready()
		if err == nil {
			return errGhost
		}
		require.ErrorContains(t, err, table)
		require.ErrorContains(t, err, "must be compact")
		return nil
	})
}

func TestDamagedLocalCopyIsReadAgain(t *testing.T) {
	rule(t, rules{keepDamaged: true}, func(t *testing.T, off rules) error {
		d := deploy(t)
		rnd := newRand(t)
		cfg := d.config(&tally{})
		cfg.off = off
		d.calm(rnd, 200)
		p, stop := d.start(cfg)
		d.settled(p)
		stop()
		damage(t, cfg.DataDir)
		d.calm(rnd, 100)
		p, stop = d.start(cfg)
		defer stop()
		if off.keepDamaged {
			require.Eventually(t, func() bool { return p.Ready() != nil && strings.Contains(p.Ready().Error(), "local copy") }, time.Minute, 10*time.Millisecond)
			return p.Ready()
		}
		d.settled(p)
		d.verdict()
		return nil
	})
}

// damage overwrites the files of all local copies.
func damage(t *testing.T, dir string) {
	t.Helper()
	damaged := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if ext := filepath.Ext(path); err == nil && (ext == ".ldb" || ext == ".log" && e.Name() != "LOG" || filepath.Base(path)[0] == 'M') {
			damaged++
			return os.WriteFile(path, []byte("damage damage damage damage damage damage"), 0o600)
		}
		return err
	}))
	require.Positive(t, damaged)
}

func TestOneFailingPartitionComesBack(t *testing.T) {
	d := deploy(t)
	cfg := d.config(&tally{})
	var failures atomic.Int32
	cfg.Machine = &tally{step: func(_ *tallyRow, ev *codecs.Event) {
		if ev.Key == "k3" && failures.Add(1) == 1 {
			panic("once")
		}
	}}
	p, _ := d.start(cfg)
	d.send(d.report("k3", 1), d.report("k4", 1), d.report("k3", 2), d.event("k3", codecs.TypeBatchCommand, &codecs.BatchCommand{Id: "c", Verb: "repair"}), d.report("k3", 3))
	d.settled(p)
	n := 0
	for id := range int32(testPartitions) {
		n += len(d.partition(d.topic(codecs.TopicDeadLetter), id))
	}
	require.Equal(t, 2, n, "the record that failed and the one behind it")
}

func TestDefaultDataDirIsNotTemporary(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "")
	cfg := Config{Machine: &tally{}}.WithDefaults()
	rel, err := filepath.Rel(os.TempDir(), cfg.DataDir)
	require.NoError(t, err)
	require.True(t, len(rel) > 2 && rel[:2] == "..", cfg.DataDir)
}

func TestMetricsOfAPartition(t *testing.T) {
	d := deploy(t)
	cfg := d.config(&tally{})
	reg := prometheus.NewRegistry()
	cfg.Registerer = reg
	block := make(chan struct{})
	var once sync.Once
	release := func() { once.Do(func() { close(block) }) }
	defer release()
	cfg.Hook = func(point string, _ int32) {
		if point == PointRowsSent {
			<-block
		}
	}
	p, _ := d.start(cfg)
	d.ready(p)
	d.send(d.report("k", 1))
	id := fmt.Sprint(codecs.Partition([]byte("k"), testPartitions))
	value := func(name string) float64 {
		all, err := reg.Gather()
		require.NoError(t, err)
		for _, f := range all {
			for _, m := range f.Metric {
				for _, l := range m.Label {
					if f.GetName() == "quiesce_processor_"+name && l.GetName() == "partition" && l.GetValue() == id {
						return m.Gauge.GetValue()
					}
				}
			}
		}
		return -1
	}
	require.Eventually(t, func() bool { return value("lag_records") == 1 && value("stalled_seconds") > 0 }, time.Minute, 5*time.Millisecond)
	release()
	require.Eventually(t, func() bool { return value("lag_records") == 0 && value("stalled_seconds") == 0 }, time.Minute, 5*time.Millisecond)
}
