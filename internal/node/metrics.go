package node

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quiesce/quiesce/processors/dispatcher"
	"github.com/quiesce/quiesce/processors/worker"
)

// counted shows counters that a role keeps by itself.
type counted struct {
	descs  []*prometheus.Desc
	values []*atomic.Uint64
	labels [][]string
}

func (c *counted) add(d *prometheus.Desc, v *atomic.Uint64, labels ...string) {
	c.descs, c.values, c.labels = append(c.descs, d), append(c.values, v), append(c.labels, labels)
}

// Describe implements prometheus.Collector.
func (c *counted) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *counted) Collect(out chan<- prometheus.Metric) {
	for i, d := range c.descs {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(c.values[i].Load()), c.labels[i]...)
	}
}

func dispatcherMetrics(k *dispatcher.Counters) prometheus.Collector {
	c := &counted{}
	d := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("quiesce_dispatcher_"+name, help, nil, nil)
	}
	c.add(d("orders_total", "Orders of the controller that were carried out."), &k.Orders)
	c.add(d("tasks_total", "Tasks written to queues."), &k.Tasks)
	c.add(d("chunks_read_total", "Chunks of the manifest that were read."), &k.ChunksRead)
	c.add(d("chunks_gone_total", "Chunks that were ordered and are gone: their batch was collected, or lost a proposal."), &k.ChunksGone)
	c.add(d("dead_letters_total", "Orders that cannot be carried out."), &k.DeadLetters)
	return c
}

func workerMetrics(cfg worker.Config) prometheus.Collector {
	c, k := &counted{}, cfg.Counters
	d := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("quiesce_worker_"+name, help, labels, prometheus.Labels{"queue": cfg.Queue})
	}
	c.add(d("attempts_total", "Attempts that were started."), &k.Attempts)
	c.add(d("retries_total", "Attempts that are tried again."), &k.Retries)
	c.add(d("interrupted_total", "Attempts that the end of a worker or of an assignment interrupted."), &k.Interrupted)
	c.add(d("stuck_total", "Handlers that went on after their time-out."), &k.Stuck)
	ended := d("tasks_total", "Tasks that ended, by outcome.", "outcome")
	c.add(ended, &k.OK, "ok")
	c.add(ended, &k.Failed, "failed")
	c.add(ended, &k.Skipped, "skipped")
	c.add(ended, &k.TimedOut, "timed_out")
	c.add(ended, &k.Lost, "lost")
	return c
}
