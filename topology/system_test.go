package topology

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSystemGolden pins every topic of a deployment with every setting.
func TestSystemGolden(t *testing.T) {
	s := Settings{Prefix: "q", Partitions: 6, Replication: 3, Queues: []Queue{{Name: "render", Partitions: 32,
		Retries: []time.Duration{time.Second, 90 * time.Second, 1500 * time.Millisecond}}}}
	require.NoError(t, s.Validate())
	var b strings.Builder
	for _, spec := range s.System() {
		fmt.Fprintf(&b, "%s partitions=%d replication=%d with=%s\n", spec.Name, spec.Partitions, spec.Replication, spec.With)
		for _, k := range sortedKeys(spec.Configs) {
			fmt.Fprintf(&b, "    %s=%s", k, spec.Configs[k])
			if least, ok := spec.AtLeast[k]; ok {
				fmt.Fprintf(&b, " (at least %d)", least)
			}
			b.WriteByte('\n')
		}
	}
	golden(t, "system.txt", b.String())
}

// golden compares with a file under testdata; REWRITE=1 writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if os.Getenv("REWRITE") != "" {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "REWRITE=1 go test writes it anew")
}

func TestSystemKeepsTheRules(t *testing.T) {
	specs := System("q", 5)
	byName := map[string]Spec{}
	for _, s := range specs {
		require.NoError(t, ValidTopic(s.Name))
		require.True(t, Reserved("q", s.Name))
		require.NotContains(t, byName, s.Name)
		require.Equal(t, TimestampLogAppend, s.Configs[TimestampType], s.Name)
		byName[s.Name] = s
	}
	for _, s := range specs {
		if s.With != "" {
			require.Equal(t, byName[s.With].Partitions, s.Partitions, s.Name)
		}
	}
	for _, name := range []string{"controller-table", "status", "outcomes", "dispatch"} {
		require.Equal(t, "q.control", byName["q."+name].With, name)
	}
}

func TestSettingsDefaultsAreStable(t *testing.T) {
	s := Settings{Queues: []Queue{{Name: "a"}}}.WithDefaults()
	require.Equal(t, s, s.WithDefaults())
	require.NoError(t, s.Validate())
	// The times of tests: everything scaled down together.
	require.NoError(t, Settings{ZombieWindow: time.Minute, MinCompactionLag: 2 * time.Minute,
		MaxCompactionLag: 121 * time.Second, SegmentAge: time.Second}.Validate())
}

func TestSettingsFaults(t *testing.T) {
	for want, s := range map[string]Settings{
		`prefix: "a/b" cannot begin`:                      {Prefix: "a/b"},
		`partitions: -1, from 1`:                          {Partitions: -1},
		`min_insync: 3 replicas in sync of 2`:             {Replication: 2, MinInsync: 3},
		`min_compaction_lag: 5m0s must exceed the zombie`: {MinCompactionLag: 5 * time.Minute},
		`max_compaction_lag: 10m0s must exceed`:           {MaxCompactionLag: 10 * time.Minute, SegmentAge: time.Minute},
		`segment_age: 7h0m0s must not exceed`:             {SegmentAge: 7 * time.Hour},
		`retention: 144h0m0s is shorter than the longest`: {Retention: 144 * time.Hour},
		`delete_retention: 10m0s must exceed`:             {DeleteRetention: 10 * time.Minute},
		`dead_letter_retention: 696h0m0s, at least`:       {DeadLetterRetention: 29 * day},
		`max_record: 1000 bytes, at least`:                {MaxRecord: 1000},
		`max_row: 524288 bytes, at least`:                 {MaxRow: 512 << 10},
		`largest_source: 524288 bytes, at least`:          {LargestSource: 512 << 10},
		`queues[2]: queue "a" is there twice`:             {Queues: []Queue{{Name: "a"}, {Name: "a"}}},
		`queues[1]: topic name "quiesce.work.a@b"`:        {Queues: []Queue{{Name: "a@b"}}},
		`queues[1]: queue "a.retry-1s": ".retry-" in a`:   {Queues: []Queue{{Name: "a.retry-1s"}}},
		`queues[1]: queue "a": -2 partitions`:             {Queues: []Queue{{Name: "a", Partitions: -2}}},
		`queues[1]: queue "a": retry delay 1ns`:           {Queues: []Queue{{Name: "a", Retries: []time.Duration{1}}}},
		`queues[1]: queue id "a b"`:                       {Queues: []Queue{{Name: "a b"}}},
	} {
		require.ErrorContains(t, s.Validate(), want)
	}
	require.Len(t, Settings{Partitions: -1, Retention: time.Hour, SegmentAge: day}.Validate(), 3, "all at once")
}

func TestSpecs(t *testing.T) {
	specs, err := Specs(sample(t, "sink"), sample(t, "ledger"))
	require.NoError(t, err)
	var names []string
	for _, s := range specs {
		names = append(names, fmt.Sprintf("%s:%d", s.Name, s.Partitions))
	}
	require.Equal(t, []string{"audit:1", "clicks.clean:4", "clicks.hourly:1", "clicks.hourly-table:4", "clicks.raw:4",
		"decoded:8", "images:8", "thumbnails:0"}, names)

	other := sample(t, "ledger")
	other.Name, other.Topics["images"] = "other", Topic{Partitions: 9}
	other.Topics["thumbnails"] = Topic{Partitions: 3}
	specs, err = Specs(sample(t, "ledger"), other)
	require.EqualError(t, err, "topics.images: 8 partitions in topology thumbnails, 9 in other")
	require.EqualValues(t, 3, specs[len(specs)-1].Partitions, "a declared count goes before none")
}
