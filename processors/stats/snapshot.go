package stats

import (
	"math"

	"github.com/quiesce/quiesce/codecs"
)

// Snapshot is a merged row in numbers, as /v1/stats shows it. Times are in ms unless said otherwise.
type Snapshot struct {
	Type          string   `json:"type,omitempty"`
	Step          string   `json:"step,omitempty"`
	Queue         string   `json:"queue,omitempty"`
	Day           string   `json:"day,omitempty"` // 2006-01-02, UTC
	Requested     uint64   `json:"requested,omitempty"`
	Started       uint64   `json:"started"`
	Ended         Ended    `json:"ended"`
	Tasks         Tasks    `json:"tasks"`
	Elapsed       *Times   `json:"elapsed,omitempty"`
	Run           *Times   `json:"run,omitempty"`
	QueueWait     *Times   `json:"queue_wait,omitempty"`
	Throughput    float64  `json:"throughput"`                // tasks per second, from the first event to the last one
	WorkerSeconds float64  `json:"worker_seconds"`            // that workers ran tasks
	ByHour        []uint64 `json:"by_hour,omitempty"`         // tasks that ended, by hour of the day (UTC)
	FirstAt       int64    `json:"first_at,string,omitempty"` // ms since the epoch
	LastAt        int64    `json:"last_at,string,omitempty"`
	BadTimings    uint64   `json:"bad_timings,omitempty"`
}

// Ended counts jobs, steps or batches by how they ended.
type Ended struct {
	Completed             uint64 `json:"completed"`
	CompletedWithFailures uint64 `json:"completed_with_failures"`
	Failed                uint64 `json:"failed"`
	Cancelled             uint64 `json:"cancelled"`
	Expired               uint64 `json:"expired"`
	Inconsistent          uint64 `json:"inconsistent"`
}

// Tasks counts tasks by outcome; Ended is the sum.
type Tasks struct {
	Ended     uint64 `json:"ended"`
	OK        uint64 `json:"ok"`
	Failed    uint64 `json:"failed"`
	Skipped   uint64 `json:"skipped"`
	Cancelled uint64 `json:"cancelled"`
	TimedOut  uint64 `json:"timed_out"`
	Lost      uint64 `json:"lost"`
	Unknown   uint64 `json:"unknown"`
	Attempts  uint64 `json:"attempts"`
}

// Times are the quantiles of a sketch, in ms.
type Times struct {
	Count uint64  `json:"count"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// Snapshot returns the row in numbers.
func (r *Row) Snapshot() Snapshot {
	c, e, t := r.Counts, r.Counts.Ended, r.Counts.Tasks
	s := Snapshot{
		Type: r.Key.Type, Step: r.Key.Step, Queue: r.Key.Queue, Day: r.Key.Date(),
		Requested: c.Requested, Started: c.Started,
		Ended: Ended{e.Completed, e.CompletedWithFailures, e.Failed, e.Cancelled, e.Expired, e.Inconsistent},
		Tasks: Tasks{OK: t.Ok, Failed: t.Failed, Skipped: t.Skipped, Cancelled: t.Cancelled, TimedOut: t.TimedOut, Lost: t.Lost,
			Unknown: t.Unknown, Attempts: c.Attempts},
		Elapsed: times(r.Elapsed), Run: times(r.Run), QueueWait: times(r.Wait),
		WorkerSeconds: cents(r.Run.Sum() / 1000), FirstAt: c.FirstAt, LastAt: c.LastAt, BadTimings: c.BadTimings,
	}
	s.Tasks.Ended = t.Ok + t.Failed + t.Skipped + t.Cancelled + t.TimedOut + t.Lost + t.Unknown
	if s.Tasks.Ended > 0 {
		s.ByHour = append([]uint64(nil), c.Hours...)
	}
	if ms := c.LastAt - c.FirstAt; ms > 0 {
		s.Throughput = cents(float64(s.Tasks.Ended) * 1000 / float64(ms))
	}
	return s
}

func times(s *codecs.Sketch) *Times {
	n := s.Count()
	if n == 0 {
		return nil
	}
	return &Times{Count: n, P50: cents(s.Quantile(0.5)), P90: cents(s.Quantile(0.9)), P99: cents(s.Quantile(0.99)), Max: cents(s.Quantile(1))}
}

// cents rounds to two decimals: a sketch knows no more.
func cents(v float64) float64 { return math.Round(v*100) / 100 }
