package api

import "encoding/json"

// Event is the data of one server-sent event: a record of the deployment's event topic.
type Event struct {
	ID        string          `json:"id"`   // ce_id: the same for every repeat
	Type      string          `json:"type"` // for example batch.completed
	Subject   string          `json:"subject"`
	Time      Int64           `json:"time"`
	Partition int32           `json:"partition"`
	Offset    Int64           `json:"offset"`
	Data      json.RawMessage `json:"data"`
}

// Health answers /healthz and /readyz.
type Health struct {
	Status    string  `json:"status"` // ok ready
	Recovered float64 `json:"recovered_percent,omitempty"`
}
