package api

import (
	"encoding/json"
	"net/url"
	"strings"
)

// JobPath is where the job of a row's key is read: the key is the job's id, or customer 0x00 job.
func JobPath(key string) string {
	customer, id, ok := strings.Cut(key, "\x00")
	if !ok {
		return "/v1/jobs/" + url.PathEscape(key)
	}
	return "/v1/jobs/" + url.PathEscape(id) + "?customer=" + url.QueryEscape(customer)
}

// Job is one job as its row stood when it was read. The counts of a running fan-out step are those of its batch.
type Job struct {
	Job         string `json:"job"`
	Customer    string `json:"customer,omitempty"`
	Type        string `json:"type"`
	TypeVersion uint32 `json:"type_version"`
	State       string `json:"state"` // waiting running completed completed_with_failures failed cancelled expired collected
	Terminal    bool   `json:"terminal"`
	Round       uint32 `json:"round"` // 1, and one more at each redrive
	Paused      bool   `json:"paused"`
	// Quarantined jobs met a fault of ours: their records wait in the dead letter for a repair.
	Quarantined bool   `json:"quarantined"`
	Reason      string `json:"reason,omitempty"` // why the state is what it is
	// Version changes with every accepted command and change of state; If-Match takes it.
	Version Int64 `json:"version"`
	// Applied is the last record of the jobs topic that the row has seen.
	Applied Position `json:"applied"`
	Request string   `json:"request,omitempty"` // id of the request that made the job
	Self    string   `json:"self"`              // where it is read: a path, with the customer where that is needed

	Awaits   *Awaits           `json:"awaits,omitempty"`
	Steps    []JobStep         `json:"steps"` // in the order of the job's definition
	Input    *Payload          `json:"input,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Priority uint32            `json:"priority,omitempty"`
	Audit    Audit             `json:"audit"`

	RequestedAt Int64 `json:"requested_at"`
	StartedAt   Int64 `json:"started_at,omitempty"`
	EndedAt     Int64 `json:"ended_at,omitempty"`
	CompleteBy  Int64 `json:"complete_by,omitempty"`
}

// Awaits is what a waiting job waits for.
type Awaits struct {
	Batches []string `json:"batches,omitempty"`
	Jobs    []string `json:"jobs,omitempty"` // <job>, or <customer>/<job>
	Slot    bool     `json:"slot,omitempty"` // of the customer, who has as many jobs running as it may
}

// JobStep is one step of a job: a single task, or a fan-out into the tasks of a batch.
type JobStep struct {
	Step       string   `json:"step"`
	After      []string `json:"after,omitempty"`
	Queue      string   `json:"queue"`
	Split      string   `json:"split,omitempty"` // queue of the splitters; present = a fan-out
	State      string   `json:"state"`           // pending splitting running completed completed_with_failures failed cancelled expired skipped
	Round      uint32   `json:"round"`
	Batch      string   `json:"batch,omitempty"` // of a fan-out, once its split has won
	Run        string   `json:"run,omitempty"`   // of the batch
	BatchRound uint32   `json:"batch_round,omitempty"`
	Counts     *Counts  `json:"counts,omitempty"`
	Result     *Payload `json:"result,omitempty"`
	Reason     string   `json:"reason,omitempty"`
	Attempts   uint32   `json:"attempts,omitempty"`
	Window     uint32   `json:"window,omitempty"` // of a fan-out; 0 = all at once
	Policy     *Policy  `json:"policy,omitempty"`
	StartedAt  Int64    `json:"started_at,omitempty"`
	EndedAt    Int64    `json:"ended_at,omitempty"`
}

// Payload is small data by value, in the first of three forms that fits, or large data by reference.
type Payload struct {
	JSON        json.RawMessage `json:"json,omitempty"`
	Text        string          `json:"text,omitempty"`
	Base64      []byte          `json:"base64,omitempty"`
	Reference   string          `json:"reference,omitempty"`
	ContentType string          `json:"content_type,omitempty"`
}

// JobList is one page, ordered by customer and id where the rows are keyed by customer, else by id. Next is absent at the
// end; a page may be short, even empty, before that. Input and results are left out.
type JobList struct {
	Jobs []Job  `json:"jobs"`
	Next string `json:"next,omitempty"`
}

// JobTask is a task of the batch of a job's fan-out step.
type JobTask struct {
	Step  string `json:"step"`
	Batch string `json:"batch"`
	Task
}

// JobTaskList is one page, ordered by step, as the job's definition has them, and index.
type JobTaskList struct {
	Job      string    `json:"job"`
	Customer string    `json:"customer,omitempty"`
	Tasks    []JobTask `json:"tasks"`
	Next     string    `json:"next,omitempty"`
}

// Requested answers POST /v1/jobs: the request is in the log. If the job that is read later has another Request, that one
// came first, and this one changed nothing.
type Requested struct {
	Job      string   `json:"job"`
	Customer string   `json:"customer,omitempty"`
	Request  string   `json:"request"`
	Position Position `json:"position"`
}
