package api

import "github.com/quiesce/quiesce/processors/stats"

// StatsList is one page of statistics, ordered by job type, step, queue and day. From and To are the days (UTC) that they
// cover, both included. Next is absent at the end.
type StatsList struct {
	From  string           `json:"from"`
	To    string           `json:"to"`
	Stats []stats.Snapshot `json:"stats"`
	Next  string           `json:"next,omitempty"`
}
