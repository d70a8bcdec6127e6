package batch

import (
	"fmt"

	"github.com/quiesce/quiesce/codecs"
)

// Defaults of Config and bounds of a row.
const (
	DefaultMaxTotal  = 10_000_000
	DefaultRetention = 24 * hour
	DefaultMarkerTTL = 7 * 24 * hour
	DefaultOrphanTTL = 24 * hour

	hour        = 60 * 60 * 1000 // ms
	maxRowBytes = 256 << 10
	maxPast     = 16
	maxAnswers  = 32
	maxRounds   = 1000
	maxCauses   = 8
	maxWatchers = 100
	maxGrowths  = 5_000
	maxChunks   = 1 << 17 // of a run
	maxReasons  = 5000    // outcome records of one report
	maxReason   = 512     // bytes

	modeLedger  = "ledger"
	modeMarkers = "markers"
)

// Config of the machine. Every instance of a deployment uses the same.
type Config struct {
	Retention int64 // ms from the end of a batch to its collection, where START says nothing; default 24 h
	MarkerTTL int64 // ms that the marker of a collected batch stays; default 7 days
	OrphanTTL int64 // ms that reports wait for their START; default 24 h
}

// Machine implements the runtime's contract for the controller group.
type Machine struct {
	cfg Config
	off mutants

	rooms rooms
}

// mutants switch a rule off, so that tests can show what the rule is for.
type mutants struct {
	chunkKeyWithoutRun bool // chunk rows of all runs are one
	oldFailuresCount   bool // a redrive leaves what runs again in its sets
	terminalWithoutRnd bool // terminal id without the round
	sealDoesNotLook    bool // no completion check at seal
	timeoutIsSuccess   bool // a closed batch ends COMPLETED
	lateCounts         bool // reports of ended rounds count
	countUnexpected    bool // ids at and above N count
	countReports       bool // cardinality of reports, not membership
	firstLeg           bool // terminal at the first leg
	endsCounted        bool // END counted, not a set of units
	deltas             bool // header adds what a chunk reports
	gateNow            bool // a replay is judged by the state that followed, not by its offset
	anyUnit            bool // END of a unit that START does not name counts
}

// New returns the machine.
func New(cfg Config) *Machine {
	def := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	def(&cfg.Retention, DefaultRetention)
	def(&cfg.MarkerTTL, DefaultMarkerTTL)
	def(&cfg.OrphanTTL, DefaultOrphanTTL)
	return &Machine{cfg: cfg, rooms: defaultRooms}
}

// Role is controller.
func (*Machine) Role() string { return codecs.GroupController }

// Input is the control topic.
func (*Machine) Input() string { return codecs.TopicControl }

// MaxRowBytes bounds a row.
func (*Machine) MaxRowBytes() int { return maxRowBytes }

// Decode reads and checks an input record.
func (*Machine) Decode(rec *codecs.Record, ev *codecs.Event) error {
	if err := codecs.Decode(rec, ev); err != nil {
		return err
	}
	switch ev.Data.(type) {
	case *codecs.BatchStart, *codecs.BatchSeal, *codecs.BatchReport, *codecs.BatchEnd, *codecs.BatchCommand, *codecs.BatchNudge:
		return codecs.Validate(ev)
	}
	return fmt.Errorf("%w: %s on the control topic", codecs.ErrUnknownType, ev.Type)
}

// NewPart makes the empty chunk of a key.
func (m *Machine) NewPart(key string) codecs.Row { return newChunk(key, m.off) }

// LoadPart reads a chunk.
func (m *Machine) LoadPart(key string, b []byte) (codecs.Row, error) { return loadChunk(key, b, m.off) }

// Repairs says whether the event lifts a quarantine.
func (*Machine) Repairs(ev *codecs.Event) bool {
	c, ok := ev.Data.(*codecs.BatchCommand)
	return ok && c.Verb == "repair"
}

// Nudge makes the machine look at a row's deadlines.
func (*Machine) Nudge(key string) codecs.Message {
	return codecs.Message{Topic: codecs.TopicControl, Key: key, Type: codecs.TypeBatchNudge, Data: &codecs.BatchNudge{}}
}

// step is one call of Step.
type step struct {
	m     *Machine
	r     *Row
	parts []codecs.Row
	off   int64
	ev    *codecs.Event
	out   []codecs.Message
}

// Step applies one event to a header.
func (m *Machine) Step(row codecs.Row, parts []codecs.Row, off int64, ev *codecs.Event, out []codecs.Message) []codecs.Message {
	r := row.(*Row)
	s := &r.scratch
	*s = step{m: m, r: r, parts: parts, off: off, ev: ev, out: out}
	if ev.Time > s.r.Now {
		s.r.Now = ev.Time
	}
	before := s.r.mark()
	s.r.Seen = off + 1
	s.due()
	switch d := ev.Data.(type) {
	case *codecs.BatchStart:
		s.start(d)
	case *codecs.BatchSeal:
		s.seal(d)
	case *codecs.BatchReport:
		s.report(d)
	case *codecs.BatchEnd:
		s.end(d)
	case *codecs.BatchCommand:
		s.command(d)
	case *codecs.BatchNudge:
		s.progress()
	}
	s.bounded(ev, before)
	s.forget()
	s.release()
	s.announce(before)
	out = s.out
	*s = step{}
	return out
}
