package api

// BatchList is one page, ordered by id. Next is absent at the end; a page may be short, even empty, before that.
type BatchList struct {
	Batches []Batch `json:"batches"`
	Next    string  `json:"next,omitempty"`
}

// Task is one member of a batch.
type Task struct {
	Feeder   uint32 `json:"feeder,omitempty"` // whose task it is, where a batch has several
	Index    uint32 `json:"index"`
	Outcome  string `json:"outcome"` // pending running ok failed skipped cancelled timed_out lost unknown
	Reason   string `json:"reason,omitempty"`
	Attempt  uint32 `json:"attempt,omitempty"`
	Round    uint32 `json:"round,omitempty"`
	Reporter string `json:"reporter,omitempty"`
	At       Int64  `json:"at,omitempty"` // append time of the report
}

// TaskList is one page, ordered by index.
type TaskList struct {
	Batch string `json:"batch"`
	Run   string `json:"run"`
	Tasks []Task `json:"tasks"`
	Next  string `json:"next,omitempty"`
}

// Range is a run of task indexes, both ends included.
type Range struct {
	Feeder uint32 `json:"feeder,omitempty"` // whose tasks they are, where a batch has several
	First  uint32 `json:"first"`
	Last   uint32 `json:"last"`
	// Running says that a start was reported for every one of them.
	Running bool `json:"running,omitempty"`
	// LastSeen says which stage has still to report them, where the batch runs over a topology.
	LastSeen []Leg `json:"last_seen,omitempty"`
}

// Leg is an end of a topology that has not reported.
type Leg struct {
	Stage string `json:"stage"`
	Topic string `json:"topic"`
}

// Missing is one page of what a batch still waits for: task ranges in the ledger mode, units in the others.
type Missing struct {
	Batch  string  `json:"batch"`
	Run    string  `json:"run"`
	Sealed bool    `json:"sealed"` // false: indexes above the highest seen may follow
	Count  uint32  `json:"count"`  // tasks without outcome in the whole batch
	Ranges []Range `json:"ranges"`
	Units  []Unit  `json:"units,omitempty"`
	Next   string  `json:"next,omitempty"`
}

// Unit is one input partition of a stage.
type Unit struct {
	Stage     string `json:"stage"`
	Topic     string `json:"topic"`
	Partition uint32 `json:"partition"`
}

// Command is the row's answer to a command.
type Command struct {
	Command string `json:"command"`
	Verb    string `json:"verb"`
	Applied bool   `json:"applied"`
	Reason  string `json:"reason,omitempty"` // why it was rejected, or had no effect
	At      Int64  `json:"at,omitempty"`
}
