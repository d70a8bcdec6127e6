package processors

import "github.com/quiesce/quiesce/codecs"

// Row is the decoded state of one table record; see codecs.Row.
type Row = codecs.Row

// Machine is a pure state machine over one input topic. It reads no clock, no randomness and nothing but its arguments:
// the same rows and event always give the same rows and messages. Rows may be changed in place.
//
// For an event at an input offset the runtime loads the header row and the part rows that Parts names, then calls
// StepPart on each part and Step on the header. A row that already has the offset (a replay) is left out:
//
//	header new            StepPart on every part, then Step       (parts are never ahead of their header)
//	header already has it StepPart on the parts that have not     (Step is not called; outbox entries of it are re-sent)
//
// Parts is also called with a header that is ahead of the event (a replay). It must then name the same parts as it did
// the first time, or none if they no longer matter.
type Machine interface {
	// Role names the consumer group and the table: "controller" gives <prefix>.controller and its -table.
	Role() string
	// Input is the logical name of the one input topic.
	Input() string
	// Decode reads an input record. An error sends the record to the dead letter with its text.
	Decode(rec *codecs.Record, ev *codecs.Event) error

	// NewRow and NewPart make the empty row of a key; LoadRow and LoadPart read what AppendBinary wrote. key is the
	// whole table key. The rows do not keep b.
	NewRow(key string) Row
	NewPart(key string) Row
	LoadRow(key string, b []byte) (Row, error)
	LoadPart(key string, b []byte) (Row, error)

	// Parts returns the table keys of the part rows that the event touches, in a stable order. The next call for the row
	// may use the slice again.
	Parts(row Row, offset int64, ev *codecs.Event) []string
	// StepPart applies the event to one part. It never reads the header.
	StepPart(part Row, offset int64, ev *codecs.Event)
	// Step applies the event to the header, with the parts as StepPart left them, and appends what is to be sent.
	Step(row Row, parts []Row, offset int64, ev *codecs.Event, out []codecs.Message) []codecs.Message

	// Deadline is the time (ms since the epoch) at which the row wants a nudge; 0 = none.
	Deadline(row Row) int64
	// Nudge is the input record that makes the machine look at its own deadlines.
	Nudge(key string) codecs.Message
	// Status is the row's record in the compacted status topic, and whether the row has one worth repeating at take-over.
	Status(row Row, quarantined bool) (codecs.Message, bool)
	// Collect says what may be deleted once the row as it stands is durable and no replay can reach behind it: part keys,
	// and the header itself. Nothing for a row that is not a terminal marker.
	Collect(row Row) (parts []string, self bool)
	// Repairs says whether the event lifts a row's quarantine.
	Repairs(ev *codecs.Event) bool
	// MaxRowBytes bounds every row of the machine, header or part.
	MaxRowBytes() int
}

// Cutter is a Machine with something to say once per row and cut, however many events the cut took.
type Cutter interface {
	// Cut appends such messages. It is called for a header row that a cut is about to write; what it says must not be in
	// the bytes of the row, for another owner may cut elsewhere.
	Cut(row Row, out []codecs.Message) []codecs.Message
}

// Glancer is a Machine that can tell from the bytes of a header row, without decoding them, that its key is settled: it has
// no status to repeat and must not be deleted. A take-over then looks closer only if there are parts left of it.
type Glancer interface {
	// Glance returns what Deadline would say of a settled row. b is what AppendBinary wrote; it is not kept.
	Glance(b []byte) (deadline int64, settled bool)
}

// Weigher is a Row that knows about how much memory it takes beside the bytes that it is stored in. The cache counts the
// two together.
type Weigher interface {
	Weight() int
}

// Local is a Machine whose row keys belong to the partition that an event was read from, not to the key of its record:
// Decode sets Event.Key to a row of that partition. Its inputs are taken where they are, also those that another
// partitioner put there. Such row keys may contain 0x00; there are no parts and no deadlines.
type Local interface {
	Local() bool
}

// IsLocal says whether a machine's rows belong to the partitions that its events are read from.
func IsLocal(m Machine) bool {
	l, ok := m.(Local)
	return ok && l.Local()
}
