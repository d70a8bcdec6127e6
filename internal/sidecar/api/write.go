package api

// Started answers POST /v1/batches.
type Started struct {
	Batch    string   `json:"batch"`
	Run      string   `json:"run"`
	Position Position `json:"position"`
}

// Accepted answers a verb: the record is in the log, the answer comes with the row.
type Accepted struct {
	Command  string   `json:"command"`
	Position Position `json:"position"`
	// Repaired is what a repair did with the records that waited in the dead letter.
	Repaired *Repaired `json:"repaired,omitempty"`
}

// Repaired counts the records of a row that was quarantined.
type Repaired struct {
	Sent    int       `json:"sent"`          // sent back now, in their order
	Before  int       `json:"before"`        // sent back by an earlier repair
	Refused int       `json:"refused"`       // cannot be sent back
	Why     []Refusal `json:"why,omitempty"` // of the first ten refused
}

// Refusal is a record that cannot be sent back.
type Refusal struct {
	Offset Int64  `json:"offset"` // in the log
	Reason string `json:"reason"`
}

// Reported answers a report.
type Reported struct {
	Position Position `json:"position"`
}
