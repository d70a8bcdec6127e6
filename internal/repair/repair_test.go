package repair

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/internal/deploytest"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/batch"
	"github.com/quiesce/quiesce/processors/job"
)

func TestMain(m *testing.M) {
	// goleveldb frees its buffer pool up to a second after Close.
	drain := goleak.IgnoreTopFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain")
	goleak.VerifyTestMain(m, append(brokertest.Singletons(), drain)...)
}

// faulty is a machine with a fault, until it is fixed.
type faulty struct {
	processors.Machine
	fixed atomic.Bool
	bad   func(ev *codecs.Event) bool
	taken atomic.Int64 // reports
}

func (f *faulty) Step(row codecs.Row, parts []codecs.Row, offset int64, ev *codecs.Event, out []codecs.Message) []codecs.Message {
	if !f.fixed.Load() && f.bad(ev) {
		panic("a fault of ours")
	}
	if _, ok := ev.Data.(*codecs.BatchReport); ok {
		f.taken.Add(1)
	}
	return f.Machine.Step(row, parts, offset, ev, out)
}

// bench is a deployment whose controller has a fault: it cannot take a report from "poison".
type bench struct {
	*deploytest.Deployment
	t       *testing.T
	machine *faulty
	cfg     Config
}

func setup(t *testing.T) *bench {
	d := deploytest.New(t)
	b := &bench{Deployment: d, t: t, cfg: Config{Client: []kgo.Opt{kgo.SeedBrokers(d.Bootstrap...)}, Prefix: d.Prefix},
		machine: &faulty{Machine: batch.New(batch.Config{}), bad: func(ev *codecs.Event) bool {
			r, ok := ev.Data.(*codecs.BatchReport)
			return ok && r.Reporter == "poison"
		}}}
	return b
}

func (b *bench) report(i uint32, reporter string) {
	b.Send(codecs.TopicControl, "b", codecs.TypeBatchReport, &codecs.BatchReport{Run: "r", Round: 1, Reporter: reporter,
		Items: []*codecs.ReportItem{codecs.NewItem(i, i, codecs.OK)}})
}

// park runs a batch of four into the fault: one report gets through, three and a duplicate are parked.
func (b *bench) park() {
	b.Run(b.machine)
	b.Send(codecs.TopicControl, "b", codecs.TypeBatchStart, &codecs.BatchStart{Run: "r"})
	b.Send(codecs.TopicControl, "b", codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "r", Total: 4})
	b.report(0, "w")
	b.report(1, "poison")
	b.report(2, "w")
	b.report(3, "w")
	b.report(3, "w")
	b.Send(codecs.TopicControl, "b", "batch.report", nil) // a fault of its own: not parked
	b.Settled()
}

// lift sends the verb repair and waits until the dead letter is complete.
func (b *bench) lift() {
	b.Send(codecs.TopicControl, "b", codecs.TypeBatchCommand, &codecs.BatchCommand{Id: fmt.Sprint("repair", time.Now().UnixNano()), Verb: "repair"})
	b.Settled()
}

func (b *bench) repair() Result {
	b.t.Helper()
	r, err := Run(b.t.Context(), b.cfg, b.row())
	require.NoError(b.t, err)
	return r
}

func (b *bench) row() Row { return Row{Topic: codecs.TopicControl, Key: "b"} }

// A poison record parks its batch; after the fix and a repair the batch completes, and the machine has seen each record
// once.
func TestRepairCompletesTheBatch(t *testing.T) {
	b := setup(t)
	b.park()
	b.machine.fixed.Store(true)
	b.lift()
	look, err := Look(t.Context(), b.cfg, b.row())
	require.NoError(t, err)
	require.Equal(t, Result{Sent: 4}, look)
	b.machine.taken.Store(0)
	require.Equal(t, Result{Sent: 4}, b.repair())
	end := b.Await(codecs.TypeBatchCompleted, "b", 1).Data.(*codecs.BatchEvent)
	require.Equal(t, uint32(4), end.Counts.Ok)
	b.Settled()
	require.EqualValues(t, 4, b.machine.taken.Load(), "each parked report")
	require.Equal(t, Result{Before: 4}, b.repair(), "once is enough")
	b.Settled()
	require.EqualValues(t, 4, b.machine.taken.Load())
}

// A repair that died in the middle is finished by the next one.
func TestRepairGoesOn(t *testing.T) {
	b := setup(t)
	b.park()
	b.machine.fixed.Store(true)
	b.lift()
	p, err := newProducer(t.Context(), b.cfg, b.Topic(codecs.TopicControl))
	require.NoError(t, err)
	defer p.close()
	died := errors.New("died")
	n := 0
	_, err = work(t.Context(), b.cfg, b.row(), func(rec *codecs.Record) error {
		if n++; n > 2 {
			return died
		}
		return p.send(t.Context(), rec)
	})
	require.ErrorIs(t, err, died)
	require.NoError(t, p.wait())
	require.Equal(t, Result{Sent: 2, Before: 2}, b.repair())
	b.Await(codecs.TypeBatchCompleted, "b", 1)
}

// Without a fix the records are parked again; with one, each is taken once.
func TestRepairWithoutAFix(t *testing.T) {
	b := setup(t)
	b.park()
	b.lift()
	require.Equal(t, 4, b.repair().Sent)
	b.Settled()
	b.machine.fixed.Store(true)
	b.lift()
	require.Equal(t, Result{Sent: 4, Before: 4}, b.repair())
	require.Equal(t, uint32(4), b.Await(codecs.TypeBatchCompleted, "b", 1).Data.(*codecs.BatchEvent).Counts.Ok)
	b.Settled()
	require.Equal(t, Result{Before: 8}, b.repair())
}

// Jobs are repaired likewise, also by a record that another machine sent: here the end of the step's batch.
func TestRepairOfAJob(t *testing.T) {
	b := setup(t)
	workflow, err := job.New(job.Config{})
	require.NoError(t, err)
	machine := &faulty{Machine: workflow, bad: func(ev *codecs.Event) bool { _, ok := ev.Data.(*codecs.BatchEnded); return ok }}
	b.Run(machine, b.machine)
	b.Send(codecs.TopicJobs, "j", codecs.TypeJobRequested, &codecs.JobRequested{Type: "t", Version: 1, Definition: &codecs.JobType{Name: "t", Version: 1,
		Steps: []*codecs.StepSpec{{Name: "s", FanOut: &codecs.FanOutSpec{Split: deploytest.Queue, Queue: deploytest.Queue}}}}})
	b.Await(codecs.TypeStepStarted, "j", 1)
	b.Send(codecs.TopicJobs, "j", codecs.TypeSplitProposed, &codecs.SplitProposed{Step: "s", Round: 1, Proposal: "p"})
	b.Await(codecs.TypeBatchCompleted, "j.s", 1)
	b.Settled()
	machine.fixed.Store(true)
	b.Send(codecs.TopicJobs, "j", codecs.TypeJobCommand, &codecs.JobCommand{Id: "1", Verb: "repair"})
	b.Settled()
	r, err := Run(t.Context(), b.cfg, Row{Topic: codecs.TopicJobs, Key: "j"})
	require.NoError(t, err)
	require.Equal(t, Result{Sent: 1}, r)
	b.Await(codecs.TypeJobCompleted, "j", 1)
}

// What cannot be sent back is named, with the reason.
func TestRefused(t *testing.T) {
	b := setup(t)
	b.park()
	letter := func(change func(rec *codecs.Record, id *codecs.TopicID)) {
		log, err := open(t.Context(), b.cfg, codecs.TopicControl, "b")
		require.NoError(t, err)
		id, p := log.Topic().ID, codecs.Partition([]byte("b"), deploytest.Partitions)
		rec := &codecs.Record{Topic: b.Topic(codecs.TopicControl), Partition: p, Offset: 1000, Key: []byte("b"), Value: []byte("x")}
		change(rec, &id)
		d := codecs.NewDeadLetterWithin(700, b.Topic(codecs.TopicDeadLetter), rec, id, "r")
		d.Headers = append(d.Headers, codecs.Header{Key: codecs.HeaderDeadParked, Value: []byte("1")})
		b.Put(p, &d)
	}
	letter(func(rec *codecs.Record, _ *codecs.TopicID) { rec.Value = make([]byte, 1000) })
	letter(func(rec *codecs.Record, id *codecs.TopicID) { rec.Offset, id[0] = 3, id[0]+1 })
	b.machine.fixed.Store(true)
	b.lift()
	control := b.Topic(codecs.TopicControl)
	start := kadm.Offsets{}
	start.AddOffset(control, codecs.Partition([]byte("b"), deploytest.Partitions), 4, -1) // the poison is gone
	_, err := kadm.NewClient(b.Client).DeleteRecords(context.Background(), start)
	require.NoError(t, err)
	r := b.repair()
	require.Equal(t, 3, r.Sent)
	require.Len(t, r.Refused, 3)
	require.Equal(t, int64(3), r.Refused[0].Offset)
	require.Contains(t, r.Refused[0].Reason, "older than the log")
	require.Contains(t, r.Refused[1].Reason, "whole record")
	require.Contains(t, r.Refused[2].Reason, "former incarnation")
}

func TestNothingToRepair(t *testing.T) {
	b := setup(t)
	require.Equal(t, Result{}, b.repair())
	_, err := Run(t.Context(), Config{Client: b.cfg.Client, Prefix: "nobody"}, b.row())
	require.ErrorContains(t, err, "nobody")
}
