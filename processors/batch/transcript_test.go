package batch

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quiesce/quiesce/codecs"
)

// TestTranscripts runs the scripts in testdata/transcripts: one event a command, answered with what the machine says and
// the rows as they stand. `go test -run Transcripts -rewrite` writes the answers anew.
//
//	start|seal|report|end|command [run=r] [round=n]   body: the event's data as JSON, run filled in
//	tasks 0-4,9 ok [round=n] [leg=n] [feeder=n]       a report in short
//	nudge
//	wait 500                                          ms pass
//	replay from=n                                     chunks and header see the records from n on again: nothing may change
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		e := newEnv(t, mutants{})
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			e.t = t
			return e.perform(d)
		})
	})
}

var transcriptEvents = map[string]struct {
	typ  string
	data proto.Message
}{
	"start": {codecs.TypeBatchStart, &codecs.BatchStart{}}, "seal": {codecs.TypeBatchSeal, &codecs.BatchSeal{}},
	"report": {codecs.TypeBatchReport, &codecs.BatchReport{}}, "end": {codecs.TypeBatchEnd, &codecs.BatchEnd{}},
	"command": {codecs.TypeBatchCommand, &codecs.BatchCommand{}}, "nudge": {codecs.TypeBatchNudge, &codecs.BatchNudge{}},
}

// perform runs one command of a transcript.
func (e *env) perform(d *datadriven.TestData) string {
	e.sent = nil
	switch d.Cmd {
	case "wait":
		ms, err := strconv.ParseInt(d.CmdArgs[0].Key, 10, 64)
		if err != nil {
			d.Fatalf(e.t, "%v", err)
		}
		e.now += ms
		return ""
	case "replay":
		var from int64
		d.ScanArgs(e.t, "from", &from)
		for _, rec := range e.history[from:] {
			e.feed(rec, e.note)
		}
	case "tasks":
		e.step(codecs.TypeBatchReport, e.tasks(d))
	default:
		kind, ok := transcriptEvents[d.Cmd]
		if !ok {
			d.Fatalf(e.t, "unknown command %s", d.Cmd)
		}
		data := proto.Clone(kind.data)
		if err := protojson.Unmarshal([]byte("{"+d.Input+"}"), data); err != nil {
			d.Fatalf(e.t, "%v", err)
		}
		setRun(data)
		e.step(kind.typ, data)
	}
	return e.transcript()
}

// setRun fills in the run that most commands mean.
func setRun(m proto.Message) {
	r := m.ProtoReflect()
	if f := r.Descriptor().Fields().ByName("run"); f != nil && r.Get(f).String() == "" {
		r.Set(f, protoreflect.ValueOfString("r"))
	}
}

func (e *env) tasks(d *datadriven.TestData) *codecs.BatchReport {
	rep := &codecs.BatchReport{Run: "r"}
	leg := uint32(0)
	d.MaybeScanArgs(e.t, "run", &rep.Run)
	for _, a := range []struct {
		name string
		to   *uint32
	}{{"round", &rep.Round}, {"feeder", &rep.Feeder}, {"legs", &rep.Legs}, {"leg", &leg}} {
		var n uint64
		if d.MaybeScanArgs(e.t, a.name, &n) {
			*a.to = uint32(n)
		}
	}
	for _, span := range strings.Split(d.CmdArgs[0].Key, ",") {
		lo, hi, _ := strings.Cut(span, "-")
		first, err := strconv.ParseUint(lo, 10, 32)
		last := first
		if err == nil && hi != "" {
			last, err = strconv.ParseUint(hi, 10, 32)
		}
		if err != nil {
			d.Fatalf(e.t, "%v", err)
		}
		it := codecs.NewItem(uint32(first), uint32(last), codecs.Outcome_Code(codecs.Outcome_Code_value[d.CmdArgs[1].Key]))
		it.Leg = leg
		rep.Items = append(rep.Items, it)
	}
	return rep
}

// transcript is what was said since the last command, and the rows.
func (e *env) transcript() string {
	var b strings.Builder
	for _, m := range e.sent {
		switch d := m.Data.(type) {
		case *codecs.BatchEvent:
			fmt.Fprintf(&b, "-> %s: %s", m.Topic, m.Type)
			if d.Reason != "" {
				fmt.Fprintf(&b, " %q", d.Reason)
			}
			if m.ID != "" {
				fmt.Fprintf(&b, " id=%s", m.ID)
			}
		case *codecs.BatchStatus:
			fmt.Fprintf(&b, "-> %s: run=%s %s round=%d paused=%t", m.Topic, d.Run, d.State, d.Round, d.Paused)
		case *codecs.DeadLetter:
			fmt.Fprintf(&b, "-> %s: %s", m.Topic, d.Reason)
		case *codecs.Dispatch:
			fmt.Fprintf(&b, "-> %s: tasks [%d, %d) round=%d only=%d bytes", m.Topic, d.Lo, d.Hi, d.Round, len(d.Only))
		case *codecs.BatchEnded:
			fmt.Fprintf(&b, "-> %s: %s step=%s %s", m.Topic, m.Key, d.Step, d.State)
		case *codecs.TaskOutcome:
			fmt.Fprintf(&b, "-> %s: task %d %s", m.Topic, d.Index, d.Outcome)
		default:
			fmt.Fprintf(&b, "-> %s: %s", m.Topic, m.Type)
		}
		b.WriteByte('\n')
	}
	h := e.header()
	fmt.Fprintln(&b, h)
	for _, ref := range h.Chunks(0, 0, 8) {
		if _, ok := e.rows[ref.Key]; ok {
			fmt.Fprintf(&b, "  %s\n", strings.TrimSpace(strings.TrimPrefix(e.chunk(ref.Key).String(), "chunk")))
		}
	}
	if at := e.m.Deadline(h); at > 0 {
		fmt.Fprintf(&b, "  nudge in %d ms\n", at-e.now)
	}
	return b.String()
}
