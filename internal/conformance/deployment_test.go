package conformance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/internal/broker"
	"github.com/quiesce/quiesce/internal/node"
	scripts "github.com/quiesce/quiesce/testdata/conformance"
)

// TestConformance runs every script against a deployment of this release on the embedded broker.
func TestConformance(t *testing.T) {
	b, err := broker.Start(broker.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	n, err := node.Start(t.Context(), node.Config{Bootstrap: []string{b.Bootstrap()}, Roles: []string{node.RoleController}, Partitions: 4, DataDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Stop()) })
	all, err := Load(scripts.FS)
	require.NoError(t, err)
	for _, s := range all {
		t.Run(s.ID, func(t *testing.T) {
			r, err := Run(t.Context(), Config{Bootstrap: []string{b.Bootstrap()}, Prefix: "quiesce", Unique: "t", Patience: 30 * time.Second}, s)
			require.NoError(t, err)
			require.Empty(t, r.Faults, "%s", s.Title)
		})
	}
}
