package processors

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/lovoo/goka/codec"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/batch"
	"github.com/quiesce/quiesce/processors/feeder"
	"github.com/quiesce/quiesce/processors/stage"
	"github.com/quiesce/quiesce/topology"
)

const gokaDiamond = `
topology: goka-diamond
version: 1
source: ~paths
topics: {~paths: {partitions: 3}, ~asts: {partitions: 4}, ~digests: {partitions: 4}}
stages:
  parse:  {in: [~paths], out: [~asts], group: ~parse}
  digest: {in: [~paths], out: [~digests], group: ~digest}
  report: {in: [~asts, ~digests], group: ~report, client: goka, table: true}
`

// gokaWorld is a deployment with a controller and the topics of a topology.
type gokaWorld struct {
	*deployment
	topo *topology.Topology
	id   string
}

func gokaSetup(t *testing.T, yaml string) *gokaWorld {
	w := &gokaWorld{deployment: deploy(t)}
	w.id = w.prefix + "-"
	var err error
	w.topo, err = topology.Load([]byte(strings.ReplaceAll(yaml, "~", w.id)), "")
	require.NoError(t, err)
	admin, compact := kadm.NewClient(w.client), "compact"
	create := func(n int32, c map[string]*string, name string) {
		_, err := admin.CreateTopic(context.Background(), n, -1, c, name)
		require.NoError(t, err)
	}
	for name, topic := range w.topo.Topics {
		create(topic.Partitions, nil, name)
	}
	for _, s := range w.topo.Stages {
		if s.Table {
			create(w.topo.Topics[s.In[0]].Partitions, map[string]*string{"cleanup.policy": &compact}, tableOf(s.Group))
		}
	}
	for _, name := range []string{codecs.TopicOutcomes, codecs.TopicDispatch, codecs.TopicJobs, codecs.TopicUnits} {
		create(testPartitions, map[string]*string{"cleanup.policy": &compact}, w.topic(name))
	}
	c, _ := w.start(w.config(batch.New(batch.Config{})))
	w.ready(c)
	return w
}

func (w *gokaWorld) stageConfig(name string) stage.Config {
	return stage.Config{Topology: w.topo, Stage: name, Bootstrap: w.bootstrap, Prefix: w.prefix,
		Log:  w.config(nil).Logger,
		Flow: stage.Flow{Backoff: time.Millisecond, ReportAfter: time.Millisecond, CommitEvery: 20 * time.Millisecond}}
}

// plain runs a stage of the library's own that sends its record on.
func (w *gokaWorld) plain(name string) {
	cfg := w.stageConfig(name)
	cfg.Handler = func(_ context.Context, r *stage.Record) (o []stage.Output, _ error) {
		for _, topic := range w.topo.Stages[name].Out {
			o = append(o, stage.Output{Topic: topic, Key: r.Key, Value: r.Value})
		}
		return o, nil
	}
	w.background(func(ctx context.Context) error { return stage.Run(ctx, cfg) })
}

// background runs something until the test's end or until stop.
func (w *gokaWorld) background(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	var once sync.Once
	stop = func() { cancel(); once.Do(func() { require.NoError(w.t, <-done) }) }
	w.t.Cleanup(stop)
	return stop
}

// group runs a goka stage.
func (w *gokaWorld) group(cfg StageGroupConfig) (stop func()) {
	w.t.Helper()
	if cfg.DataDir == "" {
		cfg.DataDir = w.t.TempDir()
	}
	cfg.Timing = Timing{Backoff: 20 * time.Millisecond}
	g, err := NewStageGroup(cfg)
	require.NoError(w.t, err)
	return w.background(g.Run)
}

// feed feeds n records with keys k0, k1, ...
func (w *gokaWorld) feed(id, mode string, n int) {
	w.t.Helper()
	f, err := feeder.New(feeder.Config{Topology: w.topo, Bootstrap: w.bootstrap, Prefix: w.prefix, Batch: id, Mode: mode})
	require.NoError(w.t, err)
	defer func() { require.NoError(w.t, f.Close()) }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(w.t, f.Start(ctx))
	for i := range n {
		_, err := f.Send(ctx, []byte("k"+strconv.Itoa(i)), []byte(strconv.Itoa(i)))
		require.NoError(w.t, err)
	}
	_, err = f.Seal(ctx)
	require.NoError(w.t, err)
}

// outcome waits for the one terminal event of a batch.
func (w *gokaWorld) outcome(id string) (name string, data *codecs.BatchEvent) {
	w.t.Helper()
	w.read(codecs.TopicEvents, func(r *kgo.Record) bool {
		rec := codecs.Record{Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			rec.Headers = append(rec.Headers, codecs.Header(h))
		}
		var ev codecs.Event
		require.NoError(w.t, codecs.Decode(&rec, &ev))
		if ev.Key != id || !strings.HasSuffix(ev.ID, "/terminal") {
			return false
		}
		name, data = ev.Type, ev.Data.(*codecs.BatchEvent)
		return true
	})
	return name, data
}

// fold is an idempotent callback: a row is the set of inputs that were seen for its key.
func fold(w *gokaWorld) func(Context, any) {
	return func(ctx Context, v any) {
		set := map[string]bool{}
		if old, ok := ctx.Value().(string); ok {
			for _, x := range strings.Split(old, ",") {
				set[x] = true
			}
		}
		set[strings.TrimPrefix(string(ctx.Topic()), w.id)+"="+v.(string)] = true
		ctx.SetValue(strings.Join(slices.Sorted(maps.Keys(set)), ","))
	}
}

func (w *gokaWorld) report(callback func(Context, any)) StageGroupConfig {
	in := map[string]Codec{}
	for _, topic := range w.topo.Stages["report"].In {
		in[topic] = new(codec.String)
	}
	return StageGroupConfig{Stage: w.stageConfig("report"), Callback: callback, Inputs: in, Table: new(codec.String)}
}

// rows reads the table through a view.
func (w *gokaWorld) rows() map[string]string {
	w.t.Helper()
	v, err := NewStageView(context.Background(), w.report(nil))
	require.NoError(w.t, err)
	stop := w.background(v.Run)
	defer stop()
	require.Eventually(w.t, v.Recovered, time.Minute, 10*time.Millisecond)
	rows := map[string]string{}
	require.NoError(w.t, v.Each(func(key string, value any) error { rows[key] = value.(string); return nil }))
	return rows
}

// everything is what the fold of n records must give.
func everything(n int) map[string]string {
	rows := map[string]string{}
	for i := range n {
		rows["k"+strconv.Itoa(i)] = fmt.Sprintf("asts=%d,digests=%d", i, i)
	}
	return rows
}

func TestGokaStageInBothModes(t *testing.T) {
	for _, mode := range []string{"markers", "ledger"} {
		t.Run(mode, func(t *testing.T) {
			w := gokaSetup(t, gokaDiamond)
			w.plain("parse")
			w.plain("digest")
			w.group(w.report(fold(w)))
			w.feed("b-1", mode, 500)
			name, data := w.outcome("b-1")
			require.Equal(t, codecs.TypeBatchCompleted, name, "%v", data)
			require.EqualValues(t, 500, data.Counts.Total)
			require.Equal(t, everything(500), w.rows(), "the table holds everything when the batch is declared complete")
		})
	}
}

func TestGokaStageFailsRecordsNotTheProcessor(t *testing.T) {
	w := gokaSetup(t, gokaDiamond)
	w.plain("parse")
	w.plain("digest")
	tries := map[string]int{}
	var mu sync.Mutex
	cb := fold(w)
	w.group(w.report(func(ctx Context, v any) {
		i, _ := strconv.Atoi(v.(string))
		if !strings.HasSuffix(string(ctx.Topic()), "asts") {
			cb(ctx, v)
			return
		}
		ctx.SetValue("must not be seen")
		mu.Lock()
		tries[v.(string)]++
		n := tries[v.(string)]
		mu.Unlock()
		switch i % 10 {
		case 1:
			ctx.Fail(fmt.Errorf("no good: %s", v))
		case 2:
			panic("oh")
		case 3:
			ctx.Fail(stage.Skip)
		case 4:
			ctx.Loopback("x", v)
		case 5:
			if n < 3 {
				ctx.Fail(errors.New("not yet"))
			}
			ctx.Delete()
		case 6:
			ctx.SetValue(17) // the codec takes strings
		}
	}))
	w.feed("b-1", "ledger", 50)
	name, data := w.outcome("b-1")
	require.Equal(t, codecs.TypeBatchCompletedWithFailures, name)
	require.EqualValues(t, 20, data.Counts.Failed)
	require.EqualValues(t, 5, data.Counts.Skipped)
	mu.Lock()
	require.Equal(t, 3, tries["1"])
	require.Equal(t, 1, tries["4"], "what cannot work is not repeated")
	mu.Unlock()
	for key, row := range w.rows() {
		i, _ := strconv.Atoi(key[1:])
		if i%10 == 1 || i%10 == 2 || i%10 == 3 || i%10 == 4 || i%10 == 6 {
			require.Equal(t, fmt.Sprintf("digests=%d", i), row, "a failed attempt leaves nothing behind")
		}
	}
	dead := w.read(codecs.TopicDeadLetter, func() func(*kgo.Record) bool {
		n := 0
		return func(*kgo.Record) bool { n++; return n == 20 }
	}())
	require.Len(t, dead, 20)
}

func TestGokaStageRebalancesAndRestarts(t *testing.T) {
	w := gokaSetup(t, gokaDiamond)
	w.plain("parse")
	w.plain("digest")
	handled := make(chan struct{}, 1<<16)
	slow := func(ctx Context, v any) { handled <- struct{}{}; fold(w)(ctx, v) }
	dir := t.TempDir()
	cfg := w.report(slow)
	cfg.DataDir = dir
	stop := w.group(cfg)
	const n = 3000
	var wg sync.WaitGroup
	wg.Go(func() { w.feed("b-1", "markers", n) })
	for range n / 4 {
		<-handled
	}
	second := w.group(w.report(slow)) // a rebalance in the middle
	for range n / 4 {
		<-handled
	}
	stop() // and another one
	for range n / 4 {
		<-handled
	}
	second()
	w.group(cfg) // on the first one's disk, older than the changelog
	wg.Wait()
	name, data := w.outcome("b-1")
	require.Equal(t, codecs.TypeBatchCompleted, name, "%v", data)
	require.Equal(t, everything(n), w.rows())
}

// The group is killed while it settles: behind END, behind reports, before the offset is committed.
func TestGokaStageIsKilledWhileItSettles(t *testing.T) {
	w := gokaSetup(t, gokaDiamond)
	w.plain("parse")
	w.plain("digest")
	cfg := w.report(fold(w))
	var mu sync.Mutex
	kills := map[stage.Point]int{stage.PointReports: 5, stage.PointMarkers: 3}
	killed := 0
	cfg.Stage.Hook = func(p stage.Point) error {
		mu.Lock()
		defer mu.Unlock()
		if kills[p] == 0 {
			return nil
		}
		kills[p]--
		killed++
		return fmt.Errorf("killed by the test at %s", p)
	}
	w.group(cfg)
	w.feed("l", "ledger", 300)
	w.feed("m", "markers", 300)
	for _, id := range []string{"l", "m"} {
		name, data := w.outcome(id)
		require.Equal(t, codecs.TypeBatchCompleted, name, "%v", data)
		require.EqualValues(t, 300, data.Counts.Total)
	}
	require.Equal(t, everything(300), w.rows())
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, 8, killed)
}

func TestGokaStageWithoutTableSendsOn(t *testing.T) {
	w := gokaSetup(t, `
topology: goka-line
version: 1
source: ~a
topics: {~a: {partitions: 4}, ~b: {partitions: 3}}
stages:
  copy:  {in: [~a], out: [~b], group: ~copy, client: goka}
  count: {in: [~b], group: ~count}
`)
	cfg := StageGroupConfig{Stage: w.stageConfig("copy"), Callback: func(ctx Context, v any) {
		ctx.Emit(goka.Stream(w.id+"b"), "x"+ctx.Key(), append([]byte("copy of "), v.([]byte)...))
	}}
	w.group(cfg)
	var mu sync.Mutex
	got := map[string]string{}
	count := w.stageConfig("count")
	count.Handler = func(_ context.Context, r *stage.Record) ([]stage.Output, error) {
		mu.Lock()
		defer mu.Unlock()
		got[string(r.Key)] = string(r.Value)
		return nil, nil
	}
	w.background(func(ctx context.Context) error { return stage.Run(ctx, count) })
	w.feed("b-1", "markers", 200)
	name, _ := w.outcome("b-1")
	require.Equal(t, codecs.TypeBatchCompleted, name)
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, got, 200, "every record had arrived when the batch was declared complete")
	require.Equal(t, "copy of 17", got["xk17"])
}

func TestGokaStageRefusesWhatItCannotKeep(t *testing.T) {
	topo, err := topology.Load([]byte(strings.ReplaceAll(gokaDiamond, "~", "x-")), "")
	require.NoError(t, err)
	base := StageGroupConfig{Stage: stage.Config{Topology: topo, Stage: "report", Bootstrap: "127.0.0.1:1"}, Callback: func(Context, any) {},
		Table: new(codec.String)}
	_, err = NewStageGroup(base)
	require.NoError(t, err)
	for want, change := range map[string]func(*StageGroupConfig){
		"declared with client: library": func(c *StageGroupConfig) { c.Stage.Stage = "parse" },
		"no callback":                   func(c *StageGroupConfig) { c.Callback = nil },
		"the topology says table":       func(c *StageGroupConfig) { c.Table = nil },
		"not an input":                  func(c *StageGroupConfig) { c.Inputs = map[string]Codec{"x-paths": new(codec.String)} },
		"not an output":                 func(c *StageGroupConfig) { c.Outputs = map[string]Codec{"x-paths": new(codec.String)} },
		"no stage":                      func(c *StageGroupConfig) { c.Stage.Stage = "nope" },
	} {
		cfg := base
		change(&cfg)
		_, err := NewStageGroup(cfg)
		require.ErrorContains(t, err, want)
	}
}
