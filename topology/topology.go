package topology

import "sort"

// Topology declares a graph of services between Kafka topics: what a batch flows through. It is plain data; the zero
// value of an optional field is its default.
type Topology struct {
	Name    string           `yaml:"topology"`
	Version uint32           `yaml:"version"` // from 1
	Source  string           `yaml:"source"`  // the topic that feeders write
	Topics  map[string]Topic `yaml:"topics"`
	Stages  map[string]Stage `yaml:"stages"`
}

// Topic is one topic of the user. Its name is its key in Topology.Topics.
type Topic struct {
	// Partitions is the declared count. 0: the topic must exist, and its real count is used.
	Partitions int32 `yaml:"partitions"`
	// Sink: records in this topic are outside the batch. No stage of the topology may read it.
	Sink bool `yaml:"sink"`
}

// Stage is one consumer group that reads topics and writes topics. Its name is its key in Topology.Stages.
type Stage struct {
	In     []string `yaml:"in"`
	Out    []string `yaml:"out"`
	Group  string   `yaml:"group"`  // the consumer group; one stage each
	Client string   `yaml:"client"` // library (default), goka or foreign
	// Sink: the outputs are outside the batch (they are sent by timer or window, or aggregate several batches).
	Sink bool `yaml:"sink"`
	// Table: the stage is a goka group with a table (topic <group>-table, as many partitions as its inputs).
	Table bool `yaml:"table"`
	// Variable: a record may give any number of records to an output, not exactly one.
	Variable bool `yaml:"variable"`
}

// Words of Stage.Client.
const (
	ClientLibrary = "library" // the stage wrapper around a handler
	ClientGoka    = "goka"    // a goka callback with the wrapper's group, producer and storage builders
	ClientForeign = "foreign" // a service that knows nothing of Quiesce
)

// Words of a batch's mode.
const (
	ModeLedger  = "ledger"
	ModeMarkers = "markers"
	ModeCount   = "count"
	ModeCredit  = "credit"
	ModeObserve = "observe"
)

// Modes returns all words of a batch's mode.
func Modes() []string { return []string{ModeLedger, ModeMarkers, ModeCount, ModeCredit, ModeObserve} }

// MaxLegs is the highest number of legs of a ledger topology.
const MaxLegs = 16

// FeederStage is the name that feeders have where a stage is named: feeder i is the unit (FeederStage, source topic, i).
const FeederStage = "feeder"

// ClientOf returns the stage's client, the default filled in.
func (s Stage) ClientOf() string {
	if s.Client == "" {
		return ClientLibrary
	}
	return s.Client
}

// sortedKeys returns a map's keys in order: every walk over a topology is deterministic.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
