package conformance

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
)

func TestMain(m *testing.M) {
	// goleveldb frees its buffer pool up to a second after Close.
	drain := goleak.IgnoreTopFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain")
	goleak.VerifyTestMain(m, append(brokertest.Singletons(), drain)...)
}

// toy is a deployment of a few lines: it counts reports against the total of the seal. Its faults are switched on by name.
type toy struct {
	t      *testing.T
	addr   string
	prefix string
	fault  string
	totals map[string]int
	done   map[string]int
	ended  map[string]bool
}

var toys atomic.Int64

// deploy starts a toy that runs until the test ends.
func deploy(t *testing.T, fault string) *toy {
	d := &toy{t: t, addr: brokertest.Bootstrap(t), prefix: fmt.Sprintf("toy-%d-%d", os.Getpid(), toys.Add(1)), fault: fault,
		totals: map[string]int{}, done: map[string]int{}, ended: map[string]bool{}}
	cl := brokertest.Client(t, d.addr, kgo.ProducerLinger(0))
	admin := kadm.NewClient(cl)
	topics := []string{codecs.Topic(d.prefix, "control"), codecs.Topic(d.prefix, "events"), codecs.Topic(d.prefix, "dead-letter")}
	created, err := admin.CreateTopics(context.Background(), 3, 1, nil, topics...)
	require.NoError(t, err)
	require.NoError(t, created.Error())
	require.Eventually(t, func() bool {
		ends, err := admin.ListEndOffsets(context.Background(), topics...)
		return err == nil && ends.Error() == nil && len(ends) == 3
	}, time.Minute, 20*time.Millisecond)
	in := brokertest.Client(t, d.addr, kgo.ConsumeTopics(topics[0]), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for ctx.Err() == nil {
			in.PollFetches(ctx).EachRecord(func(r *kgo.Record) { d.handle(ctx, cl, r) })
		}
	}()
	t.Cleanup(func() { cancel(); <-stopped })
	return d
}

// handle answers one record; every answer is acknowledged before the next record.
func (d *toy) handle(ctx context.Context, cl *kgo.Client, r *kgo.Record) {
	rec := codecs.Record{Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		rec.Headers = append(rec.Headers, codecs.Header(h))
	}
	var ev codecs.Event
	if err := codecs.Decode(&rec, &ev); err != nil {
		if d.fault != "poison is dropped" {
			d.send(ctx, cl, &kgo.Record{Topic: codecs.Topic(d.prefix, "dead-letter"), Key: r.Key, Value: r.Value, Headers: r.Headers})
		}
		return
	}
	switch m := ev.Data.(type) {
	case *codecs.BatchSeal:
		d.totals[ev.Key] = int(m.Total) + 1
	case *codecs.BatchReport:
		d.done[ev.Key] += len(m.Items)
	}
	total, sealed := d.totals[ev.Key]
	early := d.fault == "early" && d.done[ev.Key] > 0
	if (sealed && d.done[ev.Key]+1 >= total || early) && (!d.ended[ev.Key] || d.fault == "twice") {
		d.ended[ev.Key] = true
		id := codecs.TerminalID(ev.Key, "r", 1)
		if d.fault == "twice" {
			id = fmt.Sprintf("%s-%d", id, r.Offset)
		}
		out, err := codecs.Encode(codecs.Topic(d.prefix, "events"), ev.Key, "/toy", &codecs.Event{Type: codecs.TypeBatchCompleted, ID: id,
			Data: &codecs.BatchEvent{Run: "r", State: codecs.State_completed, Counts: &codecs.Counts{Total: uint32(total - 1), Ok: uint32(d.done[ev.Key])}}})
		if err != nil {
			d.t.Error(err)
			return
		}
		k := &kgo.Record{Topic: out.Topic, Key: out.Key, Value: out.Value}
		for _, h := range out.Headers {
			k.Headers = append(k.Headers, kgo.RecordHeader(h))
		}
		d.send(ctx, cl, k)
	}
}

func (d *toy) send(ctx context.Context, cl *kgo.Client, r *kgo.Record) {
	if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil && ctx.Err() == nil {
		d.t.Error(err)
	}
}

// script has two interleaved batches of two tasks and poison of both kinds.
func script() Script {
	damaged := "{"
	report := func(batch string) Step {
		return Step{Send: codecs.TypeBatchReport, Of: batch, Each: "0-1", Data: map[string]any{"run": "r",
			"items": []any{map[string]any{"first": "$i", "outcome": "ok"}}}}
	}
	seal := func(batch string) Step {
		return Step{Send: codecs.TypeBatchSeal, Of: batch, Data: map[string]any{"run": "r", "total": 2}}
	}
	return Script{ID: "C99", Title: "t", Source: "s", Steps: []Step{
		report("a"), report("b"), seal("a"),
		{Send: codecs.TypeBatchReport, Of: "a", Key: "-"}, {Send: codecs.TypeBatchReport, Of: "a", Value: &damaged},
		{Await: codecs.TypeBatchCompleted, Of: "a"}, seal("b"), seal("b"),
	}, Expect: []Expectation{
		{Of: "a", Events: map[string]int{codecs.TypeBatchCompleted: 1}, Counts: map[string]uint32{"total": 2, "ok": 2}, DeadLetters: 2},
		{Of: "b", Events: map[string]int{codecs.TypeBatchCompleted: 1}, State: "completed"},
	}}
}

func TestRunTellsRightFromWrong(t *testing.T) {
	for fault, want := range map[string]string{
		"":                  "",
		"poison is dropped": `a: 0 dead letters [], want 2`,
		"twice":             `b: 2 events batch.completed, want 1`,
		"early":             `a: 4294967295 total, want 2`,
	} {
		t.Run("fault "+fault, func(t *testing.T) {
			d := deploy(t, fault)
			for _, unique := range []string{"1", "2"} { // twice on the same deployment
				res, err := Run(context.Background(), Config{Bootstrap: strings.Split(d.addr, ","), Prefix: d.prefix, Unique: unique}, script())
				require.NoError(t, err)
				require.Equal(t, want == "", res.Passed, res.Faults)
				require.Contains(t, strings.Join(res.Faults, "\n"), want)
			}
		})
	}
}

func TestRunNamesWhatDoesNotCome(t *testing.T) {
	d := deploy(t, "")
	s := script()
	s.Steps = append([]Step{{Await: codecs.TypeBatchFailed, Of: "a"}}, s.Steps...)
	res, err := Run(context.Background(), Config{Bootstrap: strings.Split(d.addr, ","), Prefix: d.prefix, Unique: "1", Patience: 300 * time.Millisecond}, s)
	require.NoError(t, err)
	require.False(t, res.Passed)
	require.Contains(t, res.Faults[0], "step 1: batch.failed of a did not come within 300ms")
}

func TestRunNeedsADeployment(t *testing.T) {
	addr := brokertest.Bootstrap(t)
	_, err := Run(context.Background(), Config{Bootstrap: strings.Split(addr, ","), Prefix: "nobody", Unique: "1"}, script())
	require.ErrorContains(t, err, "conformance C99")
}
