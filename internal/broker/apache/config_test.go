//go:build unix

package apache

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProperties(t *testing.T) {
	all := []ports{{1, 11}, {2, 12}, {3, 13}}
	one := properties(Config{Nodes: 1, Settings: map[string]string{"auto.create.topics.enable": "true"}}, all[:1], 0, "/d")
	require.Contains(t, one, "auto.create.topics.enable=true\n", "settings win")
	require.Contains(t, one, "controller.quorum.voters=1@127.0.0.1:11\n")
	require.Contains(t, one, "min.insync.replicas=1\n")

	three := properties(Config{Nodes: 3}, all, 1, "/d")
	for _, line := range []string{
		"node.id=2", "log.dirs=/d", "listeners=PLAINTEXT://127.0.0.1:2,CONTROLLER://127.0.0.1:12",
		"controller.quorum.voters=1@127.0.0.1:11,2@127.0.0.1:12,3@127.0.0.1:13",
		"min.insync.replicas=2", "offsets.topic.replication.factor=3", "auto.create.topics.enable=false",
	} {
		require.Contains(t, three, line+"\n")
	}
}

func TestConfigValidate(t *testing.T) {
	require.NoError(t, Config{}.WithDefaults().Validate())
	err := Config{Nodes: 2, StartTimeout: -1}.Validate()
	require.ErrorContains(t, err, "a cluster of 2 nodes: 1 or 3")
	require.ErrorContains(t, err, "negative")
}

func TestFreePortsDiffer(t *testing.T) {
	all, err := freePorts(3)
	require.NoError(t, err)
	seen := map[int]bool{}
	for _, p := range all {
		seen[p.broker], seen[p.controller] = true, true
	}
	require.Len(t, seen, 6)
}
