package demo

import "github.com/quiesce/quiesce/topology"

// Topology declares the DAG. Every topic has the same number of partitions.
func Topology(partitions int32) *topology.Topology {
	topics := map[string]topology.Topic{}
	for _, name := range []string{topicPaths, topicFiles, topicDecls, topicDigests} {
		topics[name] = topology.Topic{Partitions: partitions}
	}
	return &topology.Topology{
		Name: "go-index", Version: 1, Source: topicPaths, Topics: topics,
		Stages: map[string]topology.Stage{
			StageRead:   {In: []string{topicPaths}, Out: []string{topicFiles}, Group: "go-index.read"},
			StageParse:  {In: []string{topicFiles}, Out: []string{topicDecls}, Group: "go-index.parse"},
			StageDigest: {In: []string{topicFiles}, Out: []string{topicDigests}, Group: "go-index.digest"},
			StageReport: {In: []string{topicDecls, topicDigests}, Group: "go-index.report", Client: topology.ClientGoka, Table: true},
		},
	}
}
