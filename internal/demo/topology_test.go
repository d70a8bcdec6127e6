package demo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/topology"
)

func TestTopologyFitsItsModes(t *testing.T) {
	top := Topology(4)
	for _, mode := range []string{topology.ModeMarkers, topology.ModeLedger} {
		require.NoError(t, top.Validate(mode))
	}
	require.Len(t, top.Legs(), 2)
}
