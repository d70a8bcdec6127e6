package api

// TopologyList is all declared topologies.
type TopologyList struct {
	Topologies []TopologyDoc `json:"topologies"`
}

// TopologyDoc is one declared topology.
type TopologyDoc struct {
	Name    string              `json:"name"`
	Version uint32              `json:"version"`
	Source  string              `json:"source"` // the topic that feeders write
	Modes   []string            `json:"modes"`  // that it fits
	Topics  map[string]TopicDoc `json:"topics"`
	Stages  map[string]StageDoc `json:"stages"`
	Text    string              `json:"text"`    // drawn with characters
	Mermaid string              `json:"mermaid"` // drawn by mermaid
}

// TopicDoc is a topic; partitions 0 = whatever it has.
type TopicDoc struct {
	Partitions int32 `json:"partitions"`
	Sink       bool  `json:"sink,omitempty"`
}

// StageDoc is a stage.
type StageDoc struct {
	In     []string `json:"in"`
	Out    []string `json:"out,omitempty"`
	Group  string   `json:"group"`
	Client string   `json:"client"`
}
