package topology

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quiesce/quiesce/codecs"
)

// Settings decide the configuration of a deployment's own topics. Its fields are bound by rules (Validate).
type Settings struct {
	// Prefix names the deployment and begins the name of each of its topics. Default "quiesce".
	Prefix string
	// Partitions is the count of every topic of the deployment but the queues. It can never change. Default 8.
	Partitions int32
	// Replication is the number of replicas. Default -1: what the brokers default to.
	Replication int16
	// MinInsync is the number of replicas that must have a record. Default 0: 2 if Replication >= 3, else the brokers'.
	MinInsync int
	// ZombieWindow is the longest pause of a process after which it may still write. Default 5 min.
	ZombieWindow time.Duration
	// MinCompactionLag is how long a table record is safe from the cleaner. Default 10 min; above ZombieWindow.
	MinCompactionLag time.Duration
	// MaxCompactionLag is how long a stale table record may stay. Default 6 h; above MinCompactionLag.
	MaxCompactionLag time.Duration
	// DeleteRetention is how long a null record stays: a copy of a table older than half of it is useless. Default 24 h.
	DeleteRetention time.Duration
	// SegmentAge is when a table segment is closed, so that it can be compacted. Default 1 h.
	SegmentAge time.Duration
	// LongestOutage is how long a role may be down without loss. Default 7 d.
	LongestOutage time.Duration
	// Retention is how long control, reports, jobs, events and queues keep records. Default 14 d; at least LongestOutage.
	Retention time.Duration
	// DeadLetterRetention is how long poison and exhausted tasks can be sent again. Default 30 d; at least that.
	DeadLetterRetention time.Duration
	// MaxRecord bounds a record that roles read, in bytes. Default 1 MiB.
	MaxRecord int
	// MaxRow bounds a record of a table, in bytes. Default 4 MiB; at least MaxRecord.
	MaxRow int
	// LargestSource is the largest record of any source topic, the users' included. Default MaxRow.
	LargestSource int
	// Queues are the work queues; work.notify is always there.
	Queues []Queue
}

// DeadLetterMargin is what a dead letter may need beyond the record it carries: headers and the reason.
const DeadLetterMargin = 64 << 10

const (
	day           = 24 * time.Hour
	minDeadLetter = 30 * day
	retriesSuffix = ".retry-"
)

// WithDefaults returns the settings with every absent field filled in.
func (s Settings) WithDefaults() Settings {
	def(&s.Prefix, codecs.DefaultPrefix)
	def(&s.Partitions, 8)
	def(&s.Replication, -1)
	if s.MinInsync == 0 && s.Replication >= 3 {
		s.MinInsync = 2
	}
	def(&s.ZombieWindow, 5*time.Minute)
	def(&s.MinCompactionLag, 10*time.Minute)
	def(&s.MaxCompactionLag, 6*time.Hour)
	def(&s.DeleteRetention, day)
	def(&s.SegmentAge, time.Hour)
	def(&s.LongestOutage, 7*day)
	def(&s.Retention, 14*day)
	def(&s.DeadLetterRetention, minDeadLetter)
	def(&s.MaxRecord, 1<<20)
	def(&s.MaxRow, 4<<20)
	def(&s.LargestSource, s.MaxRow)
	isNotify := func(q Queue) bool { return q.Name == NotifyQueue }
	queues := slices.Clone(s.Queues)
	if !slices.ContainsFunc(queues, isNotify) {
		queues = slices.Insert(queues, 0, Queue{Name: NotifyQueue, Partitions: max(s.Partitions, 1)})
	}
	for i := range queues {
		queues[i] = queues[i].WithDefaults()
	}
	s.Queues = queues
	return s
}

func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate reports every rule that the settings break. The error is Faults.
func (s Settings) Validate() error {
	s = s.WithDefaults()
	var f Faults
	rule := func(holds bool, path, format string, args ...any) {
		if !holds {
			f.add(path, format, args...)
		}
	}
	rule(ValidTopic(s.Prefix) == nil && !strings.HasSuffix(s.Prefix, "."), "prefix", "%q cannot begin a topic's name", s.Prefix)
	rule(s.Partitions > 0 && s.Partitions <= MaxPartitions, "partitions", "%d, from 1 to %d", s.Partitions, MaxPartitions)
	rule(s.MinInsync >= 0 && (s.Replication < 0 || s.MinInsync <= int(s.Replication)), "min_insync",
		"%d replicas in sync of %d", s.MinInsync, s.Replication)
	rule(s.ZombieWindow > 0 && s.ZombieWindow < s.MinCompactionLag, "min_compaction_lag",
		"%v must exceed the zombie window of %v: else a stale row may hide a good one for good", s.MinCompactionLag, s.ZombieWindow)
	rule(s.MinCompactionLag < s.MaxCompactionLag, "max_compaction_lag",
		"%v must exceed min_compaction_lag, %v", s.MaxCompactionLag, s.MinCompactionLag)
	rule(s.SegmentAge > 0 && s.SegmentAge <= s.MaxCompactionLag, "segment_age",
		"%v must not exceed max_compaction_lag, %v: an open segment is not compacted", s.SegmentAge, s.MaxCompactionLag)
	rule(s.LongestOutage > 0 && s.Retention >= s.LongestOutage, "retention",
		"%v is shorter than the longest outage accepted, %v: unread records would be lost", s.Retention, s.LongestOutage)
	rule(s.DeleteRetention > 2*s.ZombieWindow, "delete_retention",
		"%v must exceed twice the zombie window of %v", s.DeleteRetention, s.ZombieWindow)
	rule(s.DeadLetterRetention >= minDeadLetter, "dead_letter_retention", "%v, at least %v", s.DeadLetterRetention, minDeadLetter)
	rule(s.MaxRecord >= 64<<10, "max_record", "%d bytes, at least %d", s.MaxRecord, 64<<10)
	rule(s.MaxRow >= s.MaxRecord, "max_row", "%d bytes, at least max_record, %d: a row holds what it sends", s.MaxRow, s.MaxRecord)
	rule(s.LargestSource >= s.MaxRecord, "largest_source", "%d bytes, at least max_record, %d", s.LargestSource, s.MaxRecord)
	f = append(f, queueFaults(s.Prefix, s.Queues)...)
	return f.err()
}

func queueFaults(prefix string, queues []Queue) (f Faults) {
	seen := map[string]bool{}
	for i, q := range queues {
		path := fmt.Sprintf("queues[%d]", i)
		if seen[q.Name] {
			f.add(path, "queue %q is there twice", q.Name)
		}
		seen[q.Name] = true
		if err := q.Validate(); err != nil {
			f.add(path, "%v", err)
		}
		for _, name := range q.Topics(prefix) {
			if err := ValidTopic(name); err != nil {
				f.add(path, "%v", err)
			}
		}
	}
	return f
}
