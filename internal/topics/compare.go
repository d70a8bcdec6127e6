package topics

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/quiesce/quiesce/topology"
)

// Settings of a difference that are not Kafka topic settings.
const (
	settingPartitions  = "partitions"
	settingReplication = "replication"
	settingExists      = "exists"
)

// why says what depends on a setting; a setting that is not in the list does no harm.
var why = map[string]string{
	topology.CleanupPolicy:      "records would be kept or lost against the rules",
	topology.TimestampType:      "deadlines are judged by append times",
	topology.UncleanElection:    "acknowledged records could be lost",
	topology.RetentionBytes:     "records could be deleted unread",
	topology.RetentionMs:        "records could be deleted unread",
	topology.MinCompactionLagMs: "a stale row may hide a good one for good",
	topology.MaxCompactionLagMs: "min.compaction.lag.ms must be below max.compaction.lag.ms",
	topology.DeleteRetentionMs:  "an old local store could keep deleted rows",
	topology.MaxMessageBytes:    "large records would be refused",
	topology.MinInsyncReplicas:  "acknowledged records could be lost",
}

// compare returns the differences of a topic that exists, by setting.
func compare(s topology.Spec, t topic, have map[string]string) []Difference {
	var diffs []Difference
	if n := t.partitions; s.Partitions > 0 && n != s.Partitions {
		diffs = append(diffs, Difference{Topic: s.Name, Setting: settingPartitions, Want: itoa(s.Partitions), Have: itoa(n),
			Harmful: true, Why: "keys would be looked for on another partition"})
	}
	if n, want := t.replicas, int32(s.Replication); want > 0 && n != want {
		d := Difference{Topic: s.Name, Setting: settingReplication, Want: itoa(want), Have: itoa(n), Harmful: n < want}
		if d.Harmful {
			d.Why = "acknowledged records could be lost"
		}
		diffs = append(diffs, d)
	}
	for key, want := range s.Configs {
		value, known := have[key]
		if !known {
			value = "not known to the broker"
		}
		if same(key, want, value) {
			continue
		}
		harm := harm(s, key, have)
		diffs = append(diffs, Difference{Topic: s.Name, Setting: key, Want: want, Have: value, Harmful: harm != "", Why: harm})
	}
	slices.SortFunc(diffs, func(a, b Difference) int { return cmp.Compare(a.Setting, b.Setting) })
	return diffs
}

// harm says what a value other than the wanted one breaks, "" = nothing.
func harm(s topology.Spec, key string, have map[string]string) string {
	lag := key == topology.MinCompactionLagMs || key == topology.MaxCompactionLagMs
	least, bounded := s.AtLeast[key]
	switch {
	case lag && lagsCross(have):
		return "min.compaction.lag.ms must be below max.compaction.lag.ms"
	case bounded && !below(key, have[key], least):
		return ""
	}
	return why[key]
}

// lagsCross says whether the two lags contradict each other, though each may be within its own bound.
func lagsCross(have map[string]string) bool {
	low, err1 := strconv.ParseInt(have[topology.MinCompactionLagMs], 10, 64)
	high, err2 := strconv.ParseInt(have[topology.MaxCompactionLagMs], 10, 64)
	return err1 == nil && err2 == nil && low >= high
}

// same compares values as the broker does: lists in any order, numbers by value.
func same(key, want, have string) bool {
	if want == have {
		return true
	}
	if key == topology.CleanupPolicy {
		w, h := strings.Split(want, ","), strings.Split(strings.ReplaceAll(have, " ", ""), ",")
		slices.Sort(w)
		slices.Sort(h)
		return slices.Equal(w, h)
	}
	w, err1 := strconv.ParseFloat(want, 64)
	h, err2 := strconv.ParseFloat(have, 64)
	return err1 == nil && err2 == nil && w == h
}

// below says whether a number is under its bound. -1 is unlimited where Kafka reads it so.
func below(key, value string, least int64) bool {
	n, err := strconv.ParseInt(value, 10, 64)
	if key == topology.RetentionMs && n == -1 {
		return false
	}
	return err != nil || n < least
}

func itoa(n int32) string { return strconv.FormatInt(int64(n), 10) }
