package batch

import (
	"fmt"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/quiesce/quiesce/codecs"
)

// scene draws histories: what stays the same over one, and what may happen in it.
type scene struct {
	feeders, legs uint32
	markers       bool
	children      bool
	queue         string
	spread        []uint32 // indexes that are used
	orderly       int      // steps of a beginning in order that are left: START, a seal of each feeder
}

func drawScene(t *rapid.T) *scene {
	c := &scene{feeders: rapid.Uint32Range(1, 2).Draw(t, "feeders"), legs: rapid.Uint32Range(1, 2).Draw(t, "legs")}
	switch rapid.IntRange(0, 5).Draw(t, "kind of batch") {
	case 0:
		c.markers, c.legs = true, 1
	case 1, 2:
		c.queue, c.feeders, c.legs = "q", 1, 1
		c.children = rapid.Bool().Draw(t, "open children")
	}
	c.spread = rapid.SampledFrom([][]uint32{
		{0, 1, 2, 3, 4, 5}, {0, 1, 65_535, 65_536, 65_537}, {65_535, 65_536, 131_071, 131_072, 131_073},
	}).Draw(t, "spread")
	if rapid.IntRange(0, 2).Draw(t, "orderly") > 0 {
		c.orderly = 1 + int(c.feeders)
	}
	return c
}

func (c *scene) index(t *rapid.T, label string) uint32 {
	return rapid.SampledFrom(c.spread).Draw(t, label)
}

func (c *scene) name(t *rapid.T) string {
	return rapid.SampledFrom([]string{"r", "r", "r", "r", "s", "s", "u"}).Draw(t, "run")
}

// event draws any event of the control topic, sensible or not.
func (c *scene) event(t *rapid.T) (string, proto.Message) {
	if c.orderly > 0 {
		c.orderly--
		if c.orderly == int(c.feeders) {
			return codecs.TypeBatchStart, c.start(t, "r")
		}
		return codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "r", Total: c.index(t, "total") + 1, Feeder: uint32(c.orderly)}
	}
	run := c.name(t)
	switch rapid.IntRange(0, 13).Draw(t, "event") {
	case 0, 1:
		return codecs.TypeBatchStart, c.start(t, run)
	case 2, 3:
		n := c.index(t, "total") + rapid.Uint32Range(0, 1).Draw(t, "one more")
		return codecs.TypeBatchSeal, &codecs.BatchSeal{Run: run, Total: n, Feeder: rapid.Uint32Range(0, c.feeders-1).Draw(t, "feeder")}
	case 4, 5:
		return codecs.TypeBatchCommand, c.command(t)
	case 6:
		return codecs.TypeBatchNudge, &codecs.BatchNudge{}
	case 7:
		return codecs.TypeBatchEnd, &codecs.BatchEnd{Run: run, Round: rapid.SampledFrom([]uint32{0, 1, 2}).Draw(t, "round"), Consumed: 3,
			Failed: rapid.Uint64Range(0, 1).Draw(t, "failed"), Unit: &codecs.Unit{Stage: "a", Topic: "x", Partition: rapid.Uint32Range(0, 2).Draw(t, "unit")}}
	}
	return codecs.TypeBatchReport, c.report(t, run)
}

func (c *scene) start(t *rapid.T, run string) *codecs.BatchStart {
	d := &codecs.BatchStart{Run: run, Feeders: c.feeders, Queue: c.queue, OpenChildren: c.children,
		Window:     rapid.SampledFrom([]uint32{0, 1, 2, 70_000}).Draw(t, "window"),
		ReuseOpen:  rapid.SampledFrom([]string{"", "supersede"}).Draw(t, "reuse open"),
		Reuse:      rapid.SampledFrom([]string{"", "", "reject", "only-after-failure"}).Draw(t, "reuse"),
		OnDeadline: rapid.SampledFrom([]string{"", "close"}).Draw(t, "on deadline"),
		MaxTotal:   rapid.SampledFrom([]uint32{0, 0, 131_072}).Draw(t, "max total"),
		Retention:  rapid.SampledFrom([]int64{0, 3000}).Draw(t, "retention"),
		Deadlines:  c.deadlines(t), Policy: c.policy(t)}
	if c.markers {
		d.Mode, d.Units = modeMarkers, []*codecs.UnitSet{{Stage: "a", Topic: "x", Partitions: 2}}
	}
	for i := range c.legs {
		if c.legs > 1 {
			d.Legs = append(d.Legs, &codecs.Leg{Stage: fmt.Sprint("s", i), Topic: "t"})
		}
	}
	return d
}

func (c *scene) deadlines(t *rapid.T) *codecs.Deadlines {
	within := func(label string) int64 { return rapid.SampledFrom([]int64{0, 0, 0, 300, 2500}).Draw(t, label) }
	return &codecs.Deadlines{SealWithin: within("seal"), CompleteWithin: within("complete"), NoProgressFor: within("progress"),
		CompleteBy: rapid.SampledFrom([]int64{0, 0, 0, 0, 0, 500, 1_002_000}).Draw(t, "complete by")}
}

func (c *scene) policy(t *rapid.T) *codecs.Policy {
	return rapid.SampledFrom([]*codecs.Policy{nil, nil, nil, {Kind: "fail_fast"}, {Kind: "tolerate", Tolerate: "1"},
		{Kind: "tolerate", Tolerate: "30%", MinSample: 3}}).Draw(t, "policy")
}

func (c *scene) command(t *rapid.T) *codecs.BatchCommand {
	verb := rapid.SampledFrom([]string{"cancel", "pause", "resume", "resume", "redrive", "redrive", "redrive", "extend", "policy", "reevaluate", "gc",
		"repair", "inconsistent", "inconsistent"}).Draw(t, "verb")
	d := &codecs.BatchCommand{Id: fmt.Sprint(rapid.IntRange(0, 60).Draw(t, "id")), Verb: verb, Args: &codecs.CommandArgs{}}
	switch verb {
	case "extend":
		d.Args.Deadlines = c.deadlines(t)
	case "policy":
		d.Args.Policy, d.Args.Window = c.policy(t), 3
	case "inconsistent":
		d.Args.Difference = rapid.SampledFrom([]string{"", "an edge"}).Draw(t, "difference")
	case "redrive":
		if rapid.Bool().Draw(t, "new deadlines") {
			d.Args.Deadlines = c.deadlines(t)
		}
	}
	return d
}

func (c *scene) report(t *rapid.T, run string) *codecs.BatchReport {
	d := &codecs.BatchReport{Run: run, Round: rapid.SampledFrom([]uint32{0, 1, 1, 2, 2, 3}).Draw(t, "round"), Legs: c.legs,
		Feeder: rapid.Uint32Range(0, c.feeders-1).Draw(t, "feeder")}
	switch rapid.IntRange(0, 39).Draw(t, "odd") {
	case 0:
		d.Legs = 3
	case 1:
		d.Feeder = 2
	}
	for range rapid.IntRange(1, 3).Draw(t, "items") {
		o := rapid.SampledFrom([]codecs.Outcome_Code{codecs.OK, codecs.OK, codecs.OK, codecs.Failed, codecs.Skipped, codecs.Lost, codecs.Cancelled,
			codecs.TimedOut, codecs.Unknown, codecs.Outcome_unspecified}).Draw(t, "outcome")
		a, b := c.index(t, "a"), c.index(t, "b")
		it := codecs.NewItem(min(a, b), max(a, b), o)
		if max(a, b)-min(a, b) > 10 || rapid.IntRange(0, 3).Draw(t, "set") == 0 { // no long ranges: the twin is slow
			set, err := roaring.BitmapOf(a, b, c.index(t, "c")).ToBytes()
			if err != nil {
				t.Fatal(err)
			}
			it = &codecs.ReportItem{Bitmap: set, Outcome: o}
		}
		it.Leg = rapid.Uint32Range(0, c.legs-1).Draw(t, "leg")
		d.Items = append(d.Items, it)
	}
	if c.children && rapid.IntRange(0, 3).Draw(t, "children") == 0 {
		d.Children = &codecs.Children{Count: rapid.SampledFrom([]uint32{1, 3, 65_536}).Draw(t, "count")}
	}
	return d
}

// dt are the steps of time, some of them long enough to forget runs.
var dt = []int64{0, 0, 0, 1, 1, 100, 100, 400, 1000, 3000, DefaultOrphanTTL}

// TestMachineAgreesWithTwin: over any history the machine says what the slow obvious form says.
func TestMachineAgreesWithTwin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawScene(rt)
		e, w := newEnv(t, mutants{}), newTwin()
		dead := 0
		for range rapid.IntRange(3, 40).Draw(rt, "events") {
			e.now += rapid.SampledFrom(dt).Draw(rt, "dt")
			typ, data := c.event(rt)
			n := len(e.history)
			r := e.step(typ, data)
			w.step(e.now, data)
			if len(e.history) > n+1 { // the machine's own nudge
				w.step(e.now, &codecs.BatchNudge{})
			}
			sent := e.sent
			e.sent = nil
			for _, m := range sent {
				if m.Topic == codecs.TopicDeadLetter {
					dead++
				}
			}
			want, got := w.show(), showRow(r, w, e.ends, dead)
			if want != got {
				rt.Fatalf("twin    %s\nmachine %s\n%s", want, got, e.log())
			}
		}
	})
}

func (w *twin) show() string {
	s := fmt.Sprintf("v%d ends=%v dead=%d audit=%d,%d,%d,%d", w.version, w.ends, w.refused, w.audit.Duplicates, w.audit.Late, w.audit.Unexpected, w.audit.Stale)
	if u := w.run; u != nil {
		s += fmt.Sprintf(" | %s %s %d sealed=%t paused=%t causes=%d %s", u.id, u.state, u.round, u.isSealed(), u.paused,
			len(u.causes), showCounts(u.counts(), w.confused()))
	}
	if w.next != nil {
		s += fmt.Sprintf(" | parked %s %d", w.next.id, w.next.parked)
	}
	return s
}

func showRow(r *Row, w *twin, ends []string, dead int) string {
	s := fmt.Sprintf("v%d ends=%v dead=%d audit=%d,%d,%d,%d", r.Version, ends, dead, r.Audit.GetDuplicates(), r.Audit.GetLate(), r.Audit.GetUnexpected(), r.Audit.GetStale())
	if l := r.run; l != nil {
		snap, _ := r.Snapshot()
		s += fmt.Sprintf(" | %s %s %d sealed=%t paused=%t causes=%d %s", l.Run, l.State, l.round(), snap.Sealed, l.Paused,
			len(l.Causes), showCounts(l.tally(), w.confused()))
	}
	if r.next != nil {
		s += fmt.Sprintf(" | parked %s %d", r.next.Run, r.next.Parked)
	}
	return s
}

// confused says that parked reports spoke of different numbers of legs: the run is then inconsistent for good, and what
// it counted means nothing.
func (w *twin) confused() bool {
	u := w.run
	return u.legs > 0 && (u.legs == 99 || u.start != nil && u.legs != u.legCount())
}

func showCounts(c *codecs.Counts, confused bool) string {
	if confused {
		return "-"
	}
	return fmt.Sprint(c.Total, c.Pending, c.Running, c.Ok, c.Failed, c.Skipped, c.Cancelled, c.TimedOut, c.Lost, c.Unknown)
}
