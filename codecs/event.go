package codecs

import "google.golang.org/protobuf/proto"

// Names of the event types. On the wire they are quiesce.<name>.v1.
const (
	TypeBatchStart   = "batch.start"
	TypeBatchSeal    = "batch.seal"
	TypeBatchReport  = "batch.report"
	TypeBatchEnd     = "batch.end"
	TypeBatchCommand = "batch.command"
	TypeBatchNudge   = "batch.nudge"

	TypeBatchStarted               = "batch.started"
	TypeBatchSealed                = "batch.sealed"
	TypeBatchProgress              = "batch.progress"
	TypeBatchFirstFailure          = "batch.first-failure"
	TypeBatchAttempted             = "batch.attempted"
	TypeBatchCompleted             = "batch.completed"
	TypeBatchCompletedWithFailures = "batch.completed-with-failures"
	TypeBatchFailed                = "batch.failed"
	TypeBatchCancelled             = "batch.cancelled"
	TypeBatchExpired               = "batch.expired"
	TypeBatchInconsistent          = "batch.inconsistent"
	TypeBatchDrained               = "batch.drained"
	TypeBatchLate                  = "batch.late"
	TypeBatchAudit                 = "batch.audit"
	TypeSubjobsCompleted           = "subjobs.completed"

	TypeBatchStatus  = "batch.status"
	TypeTaskOutcome  = "task.outcome"
	TypeDispatch     = "batch.dispatch"
	TypeDeadLetter   = "dead-letter"
	TypeCommandReply = "batch.command-reply"

	TypeJobRequested  = "job.requested"
	TypeJobCommand    = "job.command"
	TypeJobNudge      = "job.nudge"
	TypeTaskCompleted = "step.task-completed"
	TypeSplitProposed = "split.proposed"
	TypeBatchEnded    = "step.batch-ended"
	TypeJobEnded      = "job.ended"
	TypeJobAdmission  = "job.admission"
	TypeTask          = "task"
	TypeManifestChunk = "manifest.chunk"

	TypeJobStarted    = "job.started"
	TypeStepStarted   = "step.started"
	TypeStepCompleted = "step.completed"
	TypeJobCompleted  = "job.completed"
	TypeJobFailed     = "job.failed"
	TypeJobCancelled  = "job.cancelled"
)

// prototypes maps an event name to its empty data message.
var prototypes = map[string]proto.Message{
	TypeBatchStart:   (*BatchStart)(nil),
	TypeBatchSeal:    (*BatchSeal)(nil),
	TypeBatchReport:  (*BatchReport)(nil),
	TypeBatchEnd:     (*BatchEnd)(nil),
	TypeBatchCommand: (*BatchCommand)(nil),
	TypeBatchNudge:   (*BatchNudge)(nil),

	TypeBatchStarted:               (*BatchEvent)(nil),
	TypeBatchSealed:                (*BatchEvent)(nil),
	TypeBatchProgress:              (*BatchEvent)(nil),
	TypeBatchFirstFailure:          (*BatchEvent)(nil),
	TypeBatchAttempted:             (*BatchEvent)(nil),
	TypeBatchCompleted:             (*BatchEvent)(nil),
	TypeBatchCompletedWithFailures: (*BatchEvent)(nil),
	TypeBatchFailed:                (*BatchEvent)(nil),
	TypeBatchCancelled:             (*BatchEvent)(nil),
	TypeBatchExpired:               (*BatchEvent)(nil),
	TypeBatchInconsistent:          (*BatchEvent)(nil),
	TypeBatchDrained:               (*BatchEvent)(nil),
	TypeBatchLate:                  (*BatchEvent)(nil),
	TypeBatchAudit:                 (*BatchEvent)(nil),
	TypeSubjobsCompleted:           (*SubjobsCompleted)(nil),

	TypeBatchStatus: (*BatchStatus)(nil),
	TypeTaskOutcome: (*TaskOutcome)(nil),
	TypeDispatch:    (*Dispatch)(nil),
	TypeDeadLetter:  (*DeadLetter)(nil),

	TypeJobRequested:  (*JobRequested)(nil),
	TypeJobCommand:    (*JobCommand)(nil),
	TypeJobNudge:      (*JobNudge)(nil),
	TypeTaskCompleted: (*TaskCompleted)(nil),
	TypeSplitProposed: (*SplitProposed)(nil),
	TypeBatchEnded:    (*BatchEnded)(nil),
	TypeJobEnded:      (*JobEnded)(nil),
	TypeJobAdmission:  (*JobAdmission)(nil),
	TypeTask:          (*Task)(nil),
	TypeManifestChunk: (*ManifestChunk)(nil),

	TypeJobStarted:    (*JobEvent)(nil),
	TypeStepStarted:   (*JobEvent)(nil),
	TypeStepCompleted: (*JobEvent)(nil),
	TypeJobCompleted:  (*JobEvent)(nil),
	TypeJobFailed:     (*JobEvent)(nil),
	TypeJobCancelled:  (*JobEvent)(nil),
}

// Event is a decoded input record, as a machine sees it. Its strings may share one allocation: clone what is kept long.
type Event struct {
	Type        string        // short name, for example "batch.report"
	ID          string        // ce_id
	Source      string        // ce_source
	Subject     string        // ce_subject; the key when the record has none
	Key         string        // record key up to the first 0x00: batch or job id (or customer)
	Traceparent string        // W3C trace context, "" = none
	Time        int64         // append time of the record, ms since the epoch
	Partition   int32         // input partition
	Src         Src           // set on records that a machine emitted; the zero value otherwise
	Data        proto.Message // nil = a null value in a compacted topic
}

// Src says which step of which machine emitted a record. A receiver that keeps the highest (Offset, Index) per
// (Group, TopicID, Partition) drops exactly the repeats: outputs leave in input order per partition.
type Src struct {
	Group     string
	TopicID   [16]byte
	Partition int32
	Offset    int64
	Index     int32
}

// Message is an output of a machine. The runtime names it, stamps it with its source, and sends it after the row that
// decided it is durable.
type Message struct {
	Topic string        // logical name: events, status, outcomes, dispatch, control, ...; see Topics
	Key   string        // record key; routes by its part before the first 0x00
	Type  string        // event name
	ID    string        // ce_id; "" = derived from the input position
	Data  proto.Message // nil = a null value (compacted topics)
	Trace string        // traceparent, "" = none
	Due   bool          // an observer waits for it: the cut starts at once
}
