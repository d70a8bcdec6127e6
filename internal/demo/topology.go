package demo

import (
	_ "embed"

	"github.com/quiesce/quiesce/topology"
)

// TopologyFile declares the DAG.
//
//go:embed go-index.yaml
var TopologyFile []byte

// Topology returns the declared DAG with another number of partitions in every topic; 0 = as declared.
func Topology(partitions int32) (*topology.Topology, error) {
	t, err := topology.Load(TopologyFile, "")
	if err != nil {
		return nil, err
	}
	for name, topic := range t.Topics {
		if partitions > 0 {
			topic.Partitions = partitions
		}
		t.Topics[name] = topic
	}
	return t, nil
}
