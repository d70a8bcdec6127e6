package sidecar

import (
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/processors/stats"
)

// How old workers_wanted may be: some seconds, and so much that the tables are looked through during a small share of the
// time, however many rows they have.
const (
	wantedFor   = 5 * time.Second
	wantedShare = 20
)

// workersWanted is what autoscalers read: how many tasks of each queue could run now, or, where a batch has a deadline and
// the queue's tasks have been timed, how many have to.
type workersWanted struct {
	cfg  Config
	desc *prometheus.Desc

	mu    sync.Mutex
	until time.Time
	last  map[string]int
}

func newWorkersWanted(cfg Config) *workersWanted {
	return &workersWanted{cfg: cfg, desc: prometheus.NewDesc("quiesce_workers_wanted",
		"Tasks of a queue that should be running: as many as may, or, under a deadline, as many as it takes.", []string{"queue"}, nil)}
}

// Describe implements prometheus.Collector.
func (c *workersWanted) Describe(out chan<- *prometheus.Desc) { out <- c.desc }

// Collect implements prometheus.Collector. While a table loads nothing is said: an autoscaler keeps what it has.
func (c *workersWanted) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	began := c.cfg.Now()
	if began.After(c.until) {
		wanted, err := c.count(began)
		if err != nil {
			return
		}
		c.last = wanted
		now := c.cfg.Now()
		c.until = now.Add(max(wantedFor, wantedShare*now.Sub(began)))
	}
	for queue, n := range c.last {
		out <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(n), queue)
	}
}

// count looks through the tables. Queues that the deployment knows and nobody waits for are 0, not absent.
func (c *workersWanted) count(now time.Time) (map[string]int, error) {
	wanted := map[string]int{}
	for _, q := range c.cfg.Queues {
		wanted[q] = 0
	}
	took, err := c.took(now)
	if err != nil {
		return nil, err
	}
	for after, more := "", true; more; more = after != "" {
		var page []api.Batch
		if page, after, err = c.cfg.Batches.Scan(after, c.cfg.ScanRows); err != nil {
			return nil, err
		}
		for i := range page {
			if b := &page[i]; b.Queue != "" {
				wanted[b.Queue] += wantedBy(b, took[b.Queue], now)
			}
		}
	}
	for after, more := "", c.cfg.Jobs != nil; more; more = after != "" {
		var page []api.Job
		if page, after, err = c.cfg.Jobs.Scan(after, c.cfg.ScanRows); err != nil {
			return nil, err
		}
		for i := range page {
			for _, s := range page[i].Steps {
				switch {
				case s.State == "splitting":
					wanted[s.Split]++
				case s.State == "running" && s.Split == "":
					wanted[s.Queue]++
				}
			}
		}
	}
	return wanted, nil
}

// took is the mean time of an attempt of each queue in the last days.
func (c *workersWanted) took(now time.Time) (map[string]time.Duration, error) {
	if c.cfg.Stats == nil {
		return nil, nil
	}
	from := dayOf(now) - statsDays + 1
	rows, err := c.cfg.Stats.Rows(func(k stats.Key) bool { return k.Queue != "" && k.Day >= from })
	if err != nil {
		return nil, err
	}
	mean := map[string]time.Duration{}
	for _, row := range stats.Merge(rows, func(k stats.Key) stats.Key { return stats.Key{Queue: k.Queue} }) {
		if s := row.Snapshot(); s.Run != nil && s.Run.Count > 0 {
			mean[row.Key.Queue] = time.Duration(s.WorkerSeconds / float64(s.Run.Count) * float64(time.Second))
		}
	}
	return mean, nil
}

// wantedBy is what one batch wants: its window, at most what is left; under a deadline only as many as finish in time.
func wantedBy(b *api.Batch, took time.Duration, now time.Time) int {
	if b.Terminal || b.Paused || b.Quarantined {
		return 0
	}
	left := int(b.Counts.Total) - int(b.Counts.Ended())
	n := max(left, 0)
	if b.Window > 0 {
		n = min(n, int(b.Window))
	}
	if n == 0 || took == 0 || b.Deadlines == nil || b.Deadlines.CompleteBy == 0 {
		return n
	}
	// The last attempt has to begin an attempt's time before the end.
	room := time.UnixMilli(int64(b.Deadlines.CompleteBy)).Sub(now) / took
	if room < 1 {
		return n
	}
	return min(n, int(math.Ceil(float64(left)/float64(room))))
}
