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
}

// Reported answers a report.
type Reported struct {
	Position Position `json:"position"`
}
