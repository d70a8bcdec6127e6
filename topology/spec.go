package topology

import (
	"maps"
	"strconv"
	"time"
)

// Spec is how a topic has to be.
type Spec struct {
	Name        string
	Partitions  int32 // 0 = it must exist, with any count
	Replication int16 // -1 = the brokers' default
	// Configs are the topic's settings by their Kafka names. Those that are not named are the brokers'.
	Configs map[string]string
	// AtLeast says which values of a numeric setting do no harm although they differ: those from here on, and -1 where
	// that means unlimited.
	AtLeast map[string]int64
	// Margin, if not 0, is by how many bytes max.message.bytes must exceed that of every other topic: a dead letter holds
	// any record, its headers and the reason.
	Margin int64
	// With names the topics that need the same partition count, by the first of them; "" = none.
	With string
}

// Kafka's names of topic settings.
const (
	CleanupPolicy      = "cleanup.policy"
	TimestampType      = "message.timestamp.type"
	RetentionMs        = "retention.ms"
	RetentionBytes     = "retention.bytes"
	SegmentBytes       = "segment.bytes"
	SegmentMs          = "segment.ms"
	MinCleanableDirty  = "min.cleanable.dirty.ratio"
	MinCompactionLagMs = "min.compaction.lag.ms"
	MaxCompactionLagMs = "max.compaction.lag.ms"
	DeleteRetentionMs  = "delete.retention.ms"
	MaxMessageBytes    = "max.message.bytes"
	MinInsyncReplicas  = "min.insync.replicas"
	UncleanElection    = "unclean.leader.election.enable"
	CleanupDelete      = "delete"
	CleanupCompact     = "compact"
	TimestampLogAppend = "LogAppendTime"
	tableSegmentBytes  = 64 << 20
	queueSegmentBytes  = 64 << 20
	tableDirtyRatio    = "0.2"
	unlimited          = "-1"
)

// spec returns a topic of the deployment with what all of them have in common: the brokers date its records, all
// replicas have a record before it is acknowledged, and no replica that lacks some becomes leader.
func (s Settings) spec(name, with string, partitions int32, configs map[string]string) Spec {
	c := map[string]string{
		TimestampType:   TimestampLogAppend,
		UncleanElection: "false",
		MaxMessageBytes: strconv.Itoa(s.MaxRecord),
	}
	if s.MinInsync > 0 {
		c[MinInsyncReplicas] = strconv.Itoa(s.MinInsync)
	}
	maps.Copy(c, configs)
	return Spec{Name: name, Partitions: partitions, Replication: s.Replication, Configs: c, With: with,
		AtLeast: s.atLeast(c)}
}

// atLeast turns the rules between settings (Validate) into what each topic must keep.
func (s Settings) atLeast(configs map[string]string) map[string]int64 {
	rules := map[string]int64{
		RetentionMs:        s.LongestOutage.Milliseconds(),
		MinCompactionLagMs: s.ZombieWindow.Milliseconds() + 1,
		MaxCompactionLagMs: s.MinCompactionLag.Milliseconds() + 1,
		DeleteRetentionMs:  2*s.ZombieWindow.Milliseconds() + 1,
	}
	least := map[string]int64{}
	for key, value := range configs {
		if rule, ok := rules[key]; ok {
			least[key] = rule
		} else if key == MaxMessageBytes || key == MinInsyncReplicas {
			least[key], _ = strconv.ParseInt(value, 10, 64)
		}
	}
	return least
}

// log returns a topic that keeps records for a time.
func (s Settings) log(name, with string, keep time.Duration) Spec {
	return s.spec(name, with, s.Partitions, map[string]string{
		CleanupPolicy: CleanupDelete, RetentionMs: ms(keep), RetentionBytes: unlimited,
	})
}

// compacted returns a topic that keeps the last record of each key.
func (s Settings) compacted(name, with string, maxBytes int) Spec {
	return s.spec(name, with, s.Partitions, map[string]string{
		CleanupPolicy:      CleanupCompact,
		SegmentBytes:       strconv.Itoa(tableSegmentBytes),
		SegmentMs:          ms(s.SegmentAge),
		MinCleanableDirty:  tableDirtyRatio,
		MinCompactionLagMs: ms(s.MinCompactionLag),
		MaxCompactionLagMs: ms(s.MaxCompactionLag),
		DeleteRetentionMs:  ms(s.DeleteRetention),
		MaxMessageBytes:    strconv.Itoa(maxBytes),
	})
}

func ms(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
