package topics

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/topology"
)

// TestCompare changes one setting of a table (or log) that is as specified.
func TestCompare(t *testing.T) {
	s := topology.Settings{Replication: 3}.System()
	log, table := s[0], s[1]
	for _, c := range []struct {
		name       string
		spec       topology.Spec
		key, value string
		want       string // "" = no difference
		harmful    bool
	}{
		{"same", table, "x", "", "", false},
		{"number written otherwise", table, topology.MinCleanableDirty, "0.20", "", false},
		{"another ratio", table, topology.MinCleanableDirty, "0.5", "min.cleanable.dirty.ratio is 0.5, should be 0.2", false},
		{"also deletes", table, topology.CleanupPolicy, "compact,delete",
			"cleanup.policy is compact,delete, should be compact (records would be kept or lost against the rules)", true},
		{"lag at the zombie window", table, topology.MinCompactionLagMs, "300000",
			"min.compaction.lag.ms is 300000, should be 600000 (a stale row may hide a good one for good)", true},
		{"lag above the zombie window", table, topology.MinCompactionLagMs, "300001",
			"min.compaction.lag.ms is 300001, should be 600000", false},
		{"lag above the other", table, topology.MinCompactionLagMs, "21600000", "min.compaction.lag.ms is 21600000, should be 600000 " +
			"(min.compaction.lag.ms must be below max.compaction.lag.ms)", true},
		{"lag below the other", table, topology.MaxCompactionLagMs, "600000", "max.compaction.lag.ms is 600000, should be 21600000 " +
			"(min.compaction.lag.ms must be below max.compaction.lag.ms)", true},
		{"kept for ever", log, topology.RetentionMs, "-1", "retention.ms is -1, should be 1209600000", false},
		{"kept for the longest outage", log, topology.RetentionMs, "604800000", "retention.ms is 604800000, should be 1209600000", false},
		{"kept for less", log, topology.RetentionMs, "604799999",
			"retention.ms is 604799999, should be 1209600000 (records could be deleted unread)", true},
		{"deleted by size", log, topology.RetentionBytes, "1000",
			"retention.bytes is 1000, should be -1 (records could be deleted unread)", true},
		{"fewer in sync", log, topology.MinInsyncReplicas, "1",
			"min.insync.replicas is 1, should be 2 (acknowledged records could be lost)", true},
		{"more in sync", log, topology.MinInsyncReplicas, "3", "min.insync.replicas is 3, should be 2", false},
		{"nonsense", log, topology.MaxMessageBytes, "x",
			"max.message.bytes is x, should be 1048576 (large records would be refused)", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			have := maps.Clone(c.spec.Configs)
			have[c.key] = c.value
			diffs := compare(c.spec, topic{partitions: c.spec.Partitions, leaders: c.spec.Partitions, replicas: 3}, have)
			if c.want == "" {
				require.Empty(t, diffs)
				return
			}
			require.Len(t, diffs, 1)
			require.Equal(t, c.spec.Name+": "+c.want, diffs[0].String())
			require.Equal(t, c.harmful, diffs[0].Harmful)
		})
	}
}

func TestCompareShape(t *testing.T) {
	s := topology.Settings{Replication: 3, Partitions: 4}.System()[0]
	diffs := compare(s, topic{partitions: 5, replicas: 2}, map[string]string{})
	require.Equal(t, "quiesce.control: partitions is 5, should be 4 (keys would be looked for on another partition)",
		diffs[len(diffs)-5].String())
	require.Len(t, diffs, 2+len(s.Configs), "a broker that knows none of the settings")
	for _, d := range diffs {
		require.True(t, d.Harmful, d)
	}
	require.Empty(t, Difference{Setting: settingPartitions}.Fix())
}
