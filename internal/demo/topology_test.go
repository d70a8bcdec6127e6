package demo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/topology"
)

func TestTopologyFitsItsModes(t *testing.T) {
	top, err := Topology(3)
	require.NoError(t, err)
	require.Equal(t, int32(3), top.Topics[top.Source].Partitions)
	for _, mode := range []string{topology.ModeMarkers, topology.ModeLedger} {
		require.NoError(t, top.Validate(mode))
	}
	require.Len(t, top.Legs(), 2)
}
