package codecs

// Names of record headers.
const (
	// CloudEvents attributes, on our records.
	HeaderSpecVersion = "ce_specversion"
	HeaderID          = "ce_id"
	HeaderSource      = "ce_source"
	HeaderType        = "ce_type"
	HeaderSubject     = "ce_subject"
	HeaderContentType = "content-type"
	HeaderTraceparent = "traceparent"
	HeaderSrc         = "quiesce-src"      // see Src
	HeaderMoved       = "quiesce-moved"    // the record was re-routed once to the partition of its key
	HeaderRepaired    = "quiesce-repaired" // the record was sent back after a repair: <partition>:<offset> where it stood first

	// On the user's records, see Tag.
	HeaderBatch    = "quiesce-batch"
	HeaderRun      = "quiesce-run"
	HeaderIndex    = "quiesce-index"
	HeaderRound    = "quiesce-round"
	HeaderControl  = "quiesce-control"
	HeaderUnit     = "quiesce-source"   // on END markers: <stage>/<topic>/<partition>
	HeaderFeeder   = "quiesce-feeder"   // whose root index it is; absent = 0
	HeaderMode     = "quiesce-mode"     // see Plan; absent = ledger
	HeaderRid      = "quiesce-rid"      // mode count
	HeaderDup      = "quiesce-dup"      // mode count
	HeaderInterval = "quiesce-interval" // mode credit
)

// Content types of an event's value.
const (
	ContentProtobuf = "application/protobuf"
	ContentJSON     = "application/json"
)

// Header is one Kafka record header.
type Header struct {
	Key   string
	Value []byte
}

// HeaderName returns b as a string, without an allocation for the names above. For client libraries whose header names
// are bytes.
func HeaderName(b []byte) string {
	switch string(b) {
	case HeaderSpecVersion:
		return HeaderSpecVersion
	case HeaderID:
		return HeaderID
	case HeaderSource:
		return HeaderSource
	case HeaderType:
		return HeaderType
	case HeaderSubject:
		return HeaderSubject
	case HeaderContentType:
		return HeaderContentType
	case HeaderTraceparent:
		return HeaderTraceparent
	case HeaderSrc:
		return HeaderSrc
	case HeaderMoved:
		return HeaderMoved
	case HeaderBatch:
		return HeaderBatch
	case HeaderRun:
		return HeaderRun
	case HeaderIndex:
		return HeaderIndex
	case HeaderRound:
		return HeaderRound
	case HeaderControl:
		return HeaderControl
	case HeaderUnit:
		return HeaderUnit
	case HeaderFeeder:
		return HeaderFeeder
	case HeaderMode:
		return HeaderMode
	}
	return string(b)
}
