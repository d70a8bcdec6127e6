package api

// Batch is one batch as its row stood when it was read.
type Batch struct {
	Batch    string `json:"batch"`
	Run      string `json:"run"`
	State    string `json:"state"` // orphan open sealed completed completed_with_failures failed cancelled expired inconsistent collected
	Terminal bool   `json:"terminal"`
	Round    uint32 `json:"round"`
	Mode     string `json:"mode,omitempty"` // ledger markers count credit observe
	Paused   bool   `json:"paused"`
	// Quarantined batches met a fault of ours: their records wait in the dead letter for a repair.
	Quarantined bool   `json:"quarantined"`
	Empty       bool   `json:"empty"`            // sealed with no task at all
	Reason      string `json:"reason,omitempty"` // why the state is what it is
	// Version changes with every row write; If-Match takes it.
	Version Int64 `json:"version"`
	// Applied is the last control record that the row has seen.
	Applied Position `json:"applied"`

	Counts   Counts            `json:"counts"`
	Stages   []Stage           `json:"stages,omitempty"`
	Feeders  []Feeder          `json:"feeders,omitempty"`
	Audit    Audit             `json:"audit"`
	Topology *Topology         `json:"topology,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Owner    *Owner            `json:"owner,omitempty"`

	Policy     *Policy    `json:"policy,omitempty"`
	Deadlines  *Deadlines `json:"deadlines,omitempty"`
	OnDeadline string     `json:"on_deadline,omitempty"` // expire close
	Queue      string     `json:"queue,omitempty"`
	Window     uint32     `json:"window,omitempty"`   // 0 = all at once
	Released   uint32     `json:"released,omitempty"` // tasks given to the queue so far

	StartedAt    Int64   `json:"started_at,omitempty"`
	SealedAt     Int64   `json:"sealed_at,omitempty"`
	EndedAt      Int64   `json:"ended_at,omitempty"`
	LastProgress Int64   `json:"last_progress_at,omitempty"`
	Rate         float64 `json:"rate,omitempty"` // tasks per second since the start
	ETA          Int64   `json:"eta,omitempty"`  // absent = unknown
}

// Counts of tasks. Of a sealed ledger batch: total = the sum of all others.
type Counts struct {
	Total     uint32 `json:"total"`
	Pending   uint32 `json:"pending"`
	Running   uint32 `json:"running"`
	OK        uint32 `json:"ok"`
	Failed    uint32 `json:"failed"`
	Skipped   uint32 `json:"skipped"`
	Cancelled uint32 `json:"cancelled"`
	TimedOut  uint32 `json:"timed_out"`
	Lost      uint32 `json:"lost"`
	Unknown   uint32 `json:"unknown"` // attempted; the mode cannot say more
}

// Ended is the number of tasks that have an outcome.
func (c Counts) Ended() uint32 {
	return c.OK + c.Failed + c.Skipped + c.Cancelled + c.TimedOut + c.Lost + c.Unknown
}

// Stage is what the row knows of one input topic of a stage: the units are its partitions.
type Stage struct {
	Stage    string `json:"stage"`
	Topic    string `json:"topic"`
	Units    uint32 `json:"units"`
	Reported uint32 `json:"reported"` // units whose END is here
	Consumed Int64  `json:"consumed"` // records, of the units that reported
	Failed   Int64  `json:"failed"`
	LastAt   Int64  `json:"last_report_at,omitempty"`
	// Silent names the partitions that have not reported, at most 64 of them.
	Silent []uint32 `json:"silent,omitempty"`
}

// Feeder is one declared source of tasks.
type Feeder struct {
	Feeder uint32 `json:"feeder"`
	Sealed bool   `json:"sealed"`
	Total  uint32 `json:"total"`
}

// Audit counts what never changes a result.
type Audit struct {
	Duplicates Int64 `json:"duplicates"`
	Late       Int64 `json:"late"`
	Unexpected Int64 `json:"unexpected"`
	Stale      Int64 `json:"stale"`
}

// Topology names a declared topology.
type Topology struct {
	Name    string `json:"name"`
	Version uint32 `json:"version"`
}

// Owner is the job step that a batch belongs to.
type Owner struct {
	Job  string `json:"job"`
	Step string `json:"step,omitempty"`
	Self string `json:"self,omitempty"` // where the job is read
}

// Policy says when failures end a batch.
type Policy struct {
	Kind      string `json:"kind"` // continue fail_fast tolerate
	Tolerate  string `json:"tolerate,omitempty"`
	MinSample uint32 `json:"min_sample,omitempty"`
}

// Deadlines are ms since the epoch; NoProgressFor is a duration in ms.
type Deadlines struct {
	SealBy        Int64 `json:"seal_by,omitempty"`
	CompleteBy    Int64 `json:"complete_by,omitempty"`
	NoProgressFor Int64 `json:"no_progress_for,omitempty"`
}
