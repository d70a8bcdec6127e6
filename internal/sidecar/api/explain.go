package api

// Explain says why a batch has not ended. Lines are for people, the most telling first; the rest is the same as data.
type Explain struct {
	Batch     string         `json:"batch"`
	Run       string         `json:"run"`
	State     string         `json:"state"`
	Lines     []string       `json:"lines"`
	Stages    []ExplainStage `json:"stages"`
	Remaining uint32         `json:"remaining"` // tasks without outcome
	At        Int64          `json:"at"`        // when it was computed
	// Faults are things that could not be looked up, so that an empty answer is not taken for a good one.
	Faults []string `json:"faults,omitempty"`
}

// ExplainStage is one input topic of a stage: what its group has read, and what it has reported.
type ExplainStage struct {
	Stage      string             `json:"stage"`
	Topic      string             `json:"topic"`
	Group      string             `json:"group"`
	GroupState string             `json:"group_state,omitempty"` // as Kafka names it: Stable, Empty, Dead ...
	Members    int                `json:"members"`
	Lag        Int64              `json:"lag"`
	Remaining  uint32             `json:"remaining"` // units that have not reported
	Partitions []ExplainPartition `json:"partitions"`
}

// ExplainPartition is one unit.
type ExplainPartition struct {
	Partition uint32 `json:"partition"`
	Committed Int64  `json:"committed"` // -1: nothing committed yet
	End       Int64  `json:"end"`
	Lag       Int64  `json:"lag"`
	Reported  bool   `json:"reported"`
	// Idle is the time in ms since the committed offset was last seen to move; absent = it was never seen moving.
	Idle   *Int64 `json:"idle,omitempty"`
	Member string `json:"member,omitempty"` // client id of the owner; absent = nobody
	Host   string `json:"host,omitempty"`
}
